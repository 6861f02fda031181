import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedPostgres } from '../../src/testing/index.ts'
import {
  allDone,
  createFaultDatabase,
  type FaultDatabase,
  historyOf,
  joined,
  workerOn,
} from '../support/fault-database.ts'
import type { PublishedEvent } from '../support/history.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { bePatient } from '../support/patience.ts'
import { findPgbouncer, type Pgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import {
  FIT_SETTINGS,
  SETTLING_SETTINGS,
  seenSettings,
  setHostile,
  watchSettings,
} from '../support/seen-settings.ts'
import { available, postgresAvailable } from '../support/servers.ts'
import { type StepWorker, startAll, stepWorker } from '../support/step-worker.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

/** Long enough that a machine which does nothing for seconds costs no worker its lease. */
const HEIRS_LEASE_MS = 6_000

let server: EmbeddedPostgres
let pooler: Pgbouncer
let pool: pg.Pool

/** What a connection to the server would carry over to the next client that gets it. */
interface SessionState {
  readonly settings: readonly string[]
  readonly channels: readonly string[]
  readonly advisory_locks: number
  readonly prepared: number
  readonly temporary: boolean
}

/** The pooler itself sets these to what each client asked for. */
const KEPT_BY_POOLER = [
  'application_name',
  'client_encoding',
  'DateStyle',
  'standard_conforming_strings',
  'TimeZone',
]

/** The state of every connection of the pooler: as many transactions at once as it has connections. */
async function sessionStates(): Promise<readonly SessionState[]> {
  const clients = await Promise.all(Array.from({ length: pooler.poolSize }, () => pool.connect()))
  const states = await Promise.all(
    clients.map(async (client) => {
      await client.query('begin')
      const { rows } = await client.query<SessionState>(
        `select array(select name from pg_settings where source = 'session' and name <> all ($1)) as settings,
                array(select pg_listening_channels()) as channels,
                (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as advisory_locks,
                (select count(*)::int from pg_prepared_statements) as prepared,
                pg_my_temp_schema() <> 0 as temporary`,
        [KEPT_BY_POOLER],
      )
      return rows[0] as SessionState
    }),
  )
  for (const client of clients) {
    await client.query('commit')
    client.release()
  }
  return states
}

/** Lets a worker run through the pooler until it has handled what was published meanwhile. */
async function workThrough(
  database: FaultDatabase,
  options: { readonly listen: boolean },
): Promise<StepWorker> {
  const outbox = stepOutbox(pool, database.schema)
  const work = { ordered: { order: 'aggregate' }, unordered: {} } as const
  const worker = stepWorker(outbox, database, work, options)
  await startAll(worker)
  const committed = walks(10, 10)
  await publishSteps(stepOutbox(database.pool, database.schema), database.pool, committed)
  await allDone(database, committed.length * 2)
  await worker.worker.stop()
  return worker
}

const NOTHING: SessionState = { settings: [], channels: [], advisory_locks: 0, prepared: 0, temporary: false }

describe.skipIf(!postgresAvailable() || !available('pgbouncer', findPgbouncer() !== null))(
  'through pgbouncer in transaction mode',
  () => {
    beforeAll(async () => {
      server = await startOwnPostgres()
      pooler = await startPgbouncer(server.url)
      pool = sturdyPool({ connectionString: pooler.url, max: 20 })
    })

    afterAll(async () => {
      await pool.end()
      await pooler.stop()
      await server.stop()
    })

    test('E1 many publishers at once write their events, and none of those that rolled back', async () => {
      await using database = await createFaultDatabase(server.url)
      const outbox = stepOutbox(pool, database.schema)
      const committed = walks(12, 20)
      const publishPlainly = async (seq: number): Promise<void> => {
        const client = await pool.connect()
        await client.query('begin')
        for (const { eventId, key } of committed.filter((event) => event.seq === seq)) {
          await outbox.publish(client, 'StepTaken', { eventId, aggregateId: key, payload: { seq } })
        }
        await client.query('commit')
        client.release()
      }
      const rollBack = outbox.inTransaction(pool, async (tx) => {
        await outbox.publish(tx, 'StepTaken', { aggregateId: 'nobody', payload: { seq: 0 } })
        throw new Error('on purpose')
      })

      await Promise.all([
        expect(rollBack).rejects.toThrow('on purpose'),
        ...Array.from({ length: 10 }, (_, seq) => publishPlainly(seq)),
        publishSteps(outbox, pool, committed.slice(120), { perTransaction: 10 }),
      ])

      const { rows } = await database.pool.query<{ event_id: string }>(
        `select event_id from ${database.schema}.outbox_event`,
      )
      expect(new Set(rows.map(({ event_id }) => event_id))).toEqual(
        new Set(committed.map(({ eventId }) => eventId)),
      )
      expect(rows.length).toBe(committed.length)
    })

    test('E2 E9 U4 a whole worker works: lanes, heartbeats, and what a killed one left', async () => {
      await using database = await createFaultDatabase(server.url)
      const { pool: direct, schema } = database
      await using victim = new WorkerProcess(
        workerOn(
          database,
          'victim',
          { name: 'ordered', order: 'aggregate', concurrency: 10 },
          { url: pooler.url, handlers: { hold: true } },
        ),
      )
      await victim.told('started')
      await joined(database, 'ordered')
      const committed = walks(10, 10)
      await publishSteps(stepOutbox(direct, schema), direct, committed)
      await victim.told('begun', 10)
      // One handler takes longer than its lease, so that only heartbeats can keep it.
      const slow = committed.at(-1)?.eventId
      const before = async ({ eventId }: PublishedEvent): Promise<void> => {
        if (eventId === slow) await sleep(1.5 * HEIRS_LEASE_MS)
      }
      const heir = stepWorker(
        stepOutbox(pool, schema),
        database,
        { ordered: { order: 'aggregate', before } },
        { leaseMs: HEIRS_LEASE_MS },
      )
      await using _heir = heir.worker
      await startAll(heir)

      await victim.kill()
      await allDone(database, committed.length)

      expect(await historyOf(database, committed)).toEqual({
        lost: [],
        phantoms: [],
        inversions: [],
        duplicates: [],
      })
      expect(heir.of('claimed').some(({ suspects }) => suspects === 1)).toBe(true)
      expect(heir.of('leaseLost')).toEqual([])
    })

    test('leaves nothing of a worker in the sessions that others get next', async () => {
      await using database = await createFaultDatabase(server.url)

      await workThrough(database, { listen: false })

      expect(await sessionStates()).toEqual(Array.from({ length: pooler.poolSize }, () => NOTHING))
    })

    test('a worker that asks to be woken, which the pooler cannot do, polls', async () => {
      await using database = await createFaultDatabase(server.url)

      await workThrough(database, { listen: true })
    })

    test('and says so, once, with what to do about it', async () => {
      await using database = await createFaultDatabase(server.url)

      const worker = await workThrough(database, { listen: true })

      expect(worker.of('error').map(({ during, error }) => [during, error])).toEqual([
        [
          'listen',
          expect.objectContaining({
            code: 'NOT_LISTENING',
            message: expect.stringMatching(/a pool that connects to the server itself/),
          }),
        ],
      ])
    })

    test('and leaves no session listening', async () => {
      await using database = await createFaultDatabase(server.url)

      await workThrough(database, { listen: true })

      expect((await sessionStates()).flatMap(({ channels }) => channels)).toEqual([])
    })

    test('a worker works under whatever its role has set, and leaves the sessions as they were', async () => {
      await using database = await createFaultDatabase(server.url)
      await watchSettings(database.pool, database.schema)
      const own = new URL(server.url)
      own.searchParams.set('options', '-c default_transaction_read_only=off')
      // Its one connection is older than what the role has set, and must stay.
      const publishing = sturdyPool({ connectionString: own.href, idleTimeoutMillis: 0 })
      await setHostile(publishing, 'postgres')
      await using hostile = await startPgbouncer(server.url)
      const hostilePool = sturdyPool({ connectionString: hostile.url })
      const work = { ordered: { order: 'aggregate' }, unordered: {} } as const
      const worker = stepWorker(stepOutbox(hostilePool, database.schema), database, work)
      const committed = walks(5, 5)

      await startAll(worker)
      await publishSteps(stepOutbox(publishing, database.schema), publishing, committed)
      await allDone(database, committed.length * 2)
      await worker.worker.stop()

      expect(worker.of('error')).toEqual([])
      expect(await seenSettings(database.pool, database.schema)).toEqual([SETTLING_SETTINGS, FIT_SETTINGS])
      await publishing.query('alter role postgres reset all')
      await Promise.all([publishing.end(), hostilePool.end()])
    })
  },
)
