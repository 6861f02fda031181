import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import type { OutboxEvent, Transaction, WorkerEvent } from '../../src/index.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import { migrateUp, postgresStore } from '../../src/store/postgres/index.ts'
import { relay } from '../../src/worker/subscription.ts'
import type { RelayOptions, SubscriptionOptions } from '../../src/worker/subscription-options.ts'
import type { Worker } from '../../src/worker/worker.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { comes } from '../support/patience.ts'
import { available } from '../support/servers.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { isSystemPostgresThere, startSystemPostgres } from '../support/system-postgres.ts'
import { shopEvents } from '../worker/postgres-outbox.ts'

/** A server that only log streams use: to begin one waits for every transaction on it. */
export interface StreamServer extends AsyncDisposable {
  readonly url: string
}

/** The versions that can be started here: the embedded one, and Debian's 15. */
export const VERSIONS: readonly (15 | 18)[] = available('PostgreSQL 15', isSystemPostgresThere(15))
  ? [18, 15]
  : [18]

export function startStreamServer(
  version: 15 | 18,
  settings: Readonly<Record<string, string>> = {},
): Promise<StreamServer> {
  const all = { max_replication_slots: '40', max_wal_senders: '40', ...settings }
  return version === 15 ? startSystemPostgres(15, all) : startOwnPostgres({ settings: all })
}

type Options = Partial<SubscriptionOptions<typeof shopEvents, Transaction>>

/** Long enough that a machine which does nothing for seconds costs no reader its lease. No test waits until one ends. */
export const LEASE_MS = 5_000

/** A worker with one stream subscription, and what it was seen to do. */
export interface Watched extends AsyncDisposable {
  readonly worker: Worker
  readonly events: readonly OutboxEvent[]
  readonly told: readonly WorkerEvent[]
  saw(kind: WorkerEvent['kind'], count?: number): Promise<void>
  handled(count: number): Promise<void>
}

/** An outbox in a schema of its own on such a server. */
export interface StreamScene extends AsyncDisposable {
  readonly pool: pg.Pool
  readonly schema: string
  readonly outbox: Outbox<typeof shopEvents, Transaction>
  /** Publishes one event per aggregate, in one transaction; `n` counts on. */
  place(...aggregateIds: readonly (string | number)[]): Promise<void>
  /** `handle` sees each event after it was noted. */
  work(name: string, options?: Options, handle?: (event: OutboxEvent) => unknown): Watched
  /** The same with a transport in place of handlers. */
  relay(name: string, options: RelayOptions): Watched
  /** The row that says how far a subscription is. */
  progress(): Promise<Record<string, unknown>>
  slots(): Promise<readonly Record<string, unknown>[]>
}

export async function streamScene(url: string, clock: Clock = systemClock): Promise<StreamScene> {
  const schema = `s_${randomBytes(5).toString('hex')}`
  const pool = sturdyPool({ connectionString: url, max: 20 })
  await pool.query(`create schema ${schema}`)
  await migrateUp(pool, { schema })
  return sceneIn(pool, schema, clock)
}

/** The same where the schema is there already. */
export function sceneIn(pool: pg.Pool, schema: string, clock: Clock = systemClock): StreamScene {
  const outbox = createOutbox({ store: postgresStore({ pool, schema }), events: shopEvents, clock })
  const workers: Watched[] = []
  let n = 0
  return {
    pool,
    schema,
    outbox,
    place: (...aggregateIds) =>
      outbox.inTransaction(pool, async (tx) => {
        const inputs = aggregateIds.map((aggregateId) => {
          n += 1
          return { type: 'OrderPlaced' as const, aggregateId, payload: { n } }
        })
        await outbox.publishAll(tx, inputs)
      }),
    work: (name, options = {}, handle = () => undefined) => {
      const events: OutboxEvent[] = []
      const on = {
        '*': (event: OutboxEvent) => {
          events.push(event)
          return handle(event)
        },
      }
      const shared = { engine: 'stream', pollMs: 50, ...options, on } as const
      const made = watched(outbox, outbox.subscription(name, shared), events)
      workers.push(made)
      return made
    },
    relay: (name, options) => {
      const made = watched(outbox, relay(name, { engine: 'stream', pollMs: 50, ...options }), [])
      workers.push(made)
      return made
    },
    progress: async () =>
      (
        await pool.query(
          `select *, snapshot::text as snapshot, lsn::text as lsn from ${schema}.outbox_stream`,
        )
      ).rows[0] as Record<string, unknown>,
    slots: async () =>
      (
        await pool.query(
          `select r.* from pg_replication_slots r where r.slot_name in (select t.slot from ${schema}.outbox_stream t)`,
        )
      ).rows as Record<string, unknown>[],
    [Symbol.asyncDispose]: async () => {
      await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()))
      await pool.query(
        `select pg_drop_replication_slot(r.slot_name) from pg_replication_slots r
          where r.slot_name in (select t.slot from ${schema}.outbox_stream t) and not r.active`,
      )
      await pool.end()
    },
  }
}

function watched(
  outbox: Outbox<typeof shopEvents, Transaction>,
  subscription: Parameters<typeof outbox.worker>[0][number],
  events: readonly OutboxEvent[],
): Watched {
  const told: WorkerEvent[] = []
  const worker = outbox.worker([subscription], {
    observers: [(event) => told.push(event)],
    leaseMs: LEASE_MS,
    housekeepingMs: 50,
  })
  const count = (kind: WorkerEvent['kind']): number => told.filter((event) => event.kind === kind).length
  return {
    worker,
    events,
    told,
    saw: (kind, times = 1) => comes(`${times} ${kind}`, () => count(kind) >= times),
    handled: (times) =>
      comes(`${times} handled`, () => count('handled') >= times).catch((error: unknown) => {
        throw new Error(`${count('handled')} handled; ${JSON.stringify(told.slice(-3))}`, { cause: error })
      }),
    [Symbol.asyncDispose]: () => worker.stop({ drainMs: 2_000 }),
  }
}

/** Stops a worker, and waits until the server knows that nobody reads its slot. */
export async function stopReader(
  { worker }: Pick<Watched, 'worker'>,
  scene: Pick<StreamScene, 'slots'>,
  drainMs = 2_000,
): Promise<void> {
  await worker.stop({ drainMs })
  await comes('the slot is free', async () => (await scene.slots()).every(({ active }) => active === false))
}

/** The numbers that `place` gave. */
export function numbersOf(events: readonly OutboxEvent[]): readonly number[] {
  return events.map(({ payload }) => (payload as { readonly n: number }).n)
}
