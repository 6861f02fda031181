import pg from 'pg'
import { expect, test } from 'vitest'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { quoteSchema } from '../../src/store/postgres/identifiers.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { LaneClaims } from '../../src/store/postgres/lane-claims.ts'
import { LowWater, UNBOUNDED } from '../../src/store/postgres/low-water.ts'
import { claimLanes, join, LEASE_MS, retryLater, settled, takeLanes } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { installTables } from '../support/install-tables.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { bePatient } from '../support/patience.ts'
import { eventually } from '../support/program.ts'
import { postgresAvailable } from '../support/servers.ts'
import { FORGETFUL, type HeldWalWriter, holdWalWriter } from '../support/wal-writer.ts'
import { SteppingPool } from './stepping-pool.ts'
import { publish } from './support.ts'

bePatient()

const SCHEMA = 'own'
/** Transaction ids that a crash takes back. */
const UNWRITTEN = 200

/** A server that forces nothing to disk by itself, and on which nothing else goes on. */
async function openServer() {
  const server = await startOwnPostgres({ settings: FORGETFUL })
  const url = new URL(server.url)
  url.searchParams.set('options', `-c search_path=${SCHEMA}`)
  const pool = new pg.Pool({ connectionString: url.href })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  await installTables(pool, SCHEMA)
  const worker = postgresStore({ pool, schema: SCHEMA, clock: new ManualClock() }).openWorker()
  return {
    pool,
    worker,
    /** One session ends as by a fault of its own: the server ends all of them, and recovers without being started anew. */
    async crash(walWriter: HeldWalWriter): Promise<void> {
      process.kill(await one<number>(pool, 'select pg_backend_pid()'), 'SIGKILL')
      walWriter.kill()
      await eventually('the server is there again', () =>
        pool.query('select 1').then(
          () => true,
          () => false,
        ),
      )
    },
    [Symbol.asyncDispose]: async () => {
      await worker.close()
      await pool.end()
      await server.stop('immediate')
    },
  }
}

const nextXid = (pool: pg.Pool): Promise<string> =>
  one<string>(pool, 'select pg_snapshot_xmax(pg_current_snapshot())::text')

test.skipIf(!postgresAvailable())(
  'transaction ids that a crashed session takes back hide nothing from claims: what is held stays before what follows',
  async () => {
    await using scene = await openServer()
    const { pool, worker } = scene
    const subscription = await join(worker, { orderBy: 'aggregate' })
    const lanes = await takeLanes(worker, subscription, 'w')
    const clock = new ManualClock()
    const stepping = new SteppingPool(pool)
    const lowWater = new LowWater(stepping, quoteSchema(SCHEMA), subscription.id, clock)
    const claims = new LaneClaims(pool, quoteSchema(SCHEMA), clock)
    const refresh = async (): Promise<void> => {
      await clock.advance(1_000)
      lowWater.claimed(1)
    }
    await publish(pool, ['a'])
    const [earlier] = await claimLanes(worker, subscription, 'w', lanes, 10)
    if (earlier === undefined) throw new Error('nothing was claimed')

    await refresh()
    await lowWater.settled()
    const walWriter = await holdWalWriter(pool)
    for (let n = 0; n < UNWRITTEN; n += 1) await pool.query('select pg_current_xact_id()')
    // The bound is decided on, and the next one not yet proposed.
    const proposing = stepping.holdBefore(/outbox_event_id_seq/)
    await refresh()
    await proposing.reached
    const before = await nextXid(pool)
    await scene.crash(walWriter)
    proposing.go()
    await lowWater.settled()
    const bound = lowWater.next()
    expect(bound.heldFrom, 'a bound was decided on').not.toBe(UNBOUNDED.heldFrom)
    expect(Number(await nextXid(pool)), 'ids are given again').toBeLessThan(Number(before) - UNWRITTEN / 2)

    await eventually('the result is written', () =>
      worker.settle([settled(earlier, retryLater)]).then(
        ({ lost }) => lost.length === 0,
        () => false,
      ),
    )
    await publish(pool, ['a'])
    const request = { subscriptionId: subscription.id, workerId: 'w', limit: 10, leaseMs: LEASE_MS, lanes }
    expect(await claims.next({ request, bound, duePlaces: 5, around: [] })).toEqual([])
  },
)
