import type pg from 'pg'
import { inject } from 'vitest'
import { createTestDatabase } from './database.ts'
import {
  checkHistory,
  createHistory,
  type HistoryReport,
  type PublishedEvent,
  readHistory,
} from './history.ts'
import { installTables } from './install-tables.ts'
import { lapseLeases } from './leases.ts'
import { comes } from './patience.ts'
import { sturdyPool } from './sturdy-pool.ts'
import type { SubscriptionConfig, WorkerConfig } from './worker-config.ts'

/** A lease that is short enough to wait for, and long enough for a busy machine. */
export const LEASE_MS = 2_000

/** For a worker that must not lose anything itself, however long the machine lets it wait. */
export const LASTING_LEASE_MS = 600_000

/** Connections under this name are a test's own hands: it does not cut them off. */
export const WITNESS = 'witness'

/** An outbox in a schema of its own, and a history that its handlers write beyond the reach of any fault. */
export interface FaultDatabase extends AsyncDisposable {
  /** The outbox's server, without a search path: everything is named with its schema. */
  readonly url: string
  readonly schema: string
  /** For a test's own statements on that server. */
  readonly pool: pg.Pool
  /** Where the history is: the same schema on the server that the whole run shares, which nobody breaks. */
  readonly witnessUrl: string
  readonly witness: pg.Pool
}

/** An outbox on a server of the suite's own, to be broken, or on the one that the whole run shares. */
export async function createFaultDatabase(ownServerUrl?: string): Promise<FaultDatabase> {
  const shared = await createTestDatabase()
  const { schema } = shared
  const witnessUrl = inject('databaseUrl')
  const url = ownServerUrl ?? witnessUrl
  const pool = sturdyPool({ connectionString: withApplicationName(url, WITNESS) })
  await installTables(pool, schema)
  await createHistory(shared.pool, schema)
  return {
    url,
    schema,
    pool,
    witnessUrl,
    witness: shared.pool,
    [Symbol.asyncDispose]: async () => {
      await pool.end()
      await shared.drop()
    },
  }
}

function withApplicationName(databaseUrl: string, name: string): string {
  const url = new URL(databaseUrl)
  url.searchParams.set('application_name', name)
  return url.href
}

/** A worker's configuration, for a process of its own. */
export function workerOn(
  database: FaultDatabase,
  workerId: string,
  subscription: SubscriptionConfig,
  more: Partial<WorkerConfig> = {},
): WorkerConfig {
  const { witnessUrl, schema } = database
  const url = urlFor(database, workerId)
  return { workerId, url, witnessUrl, schema, leaseMs: LEASE_MS, subscription, ...more }
}

/** The server, for sessions that are known by their worker. */
export function urlFor({ url, schema }: FaultDatabase, workerId: string): string {
  return withApplicationName(url, sessionsOf(schema, workerId))
}

const sessionsOf = (schema: string, workerId: string): string => `${schema} ${workerId}`

/**
 * Ends the leases of a worker whose process is dead. Not before its sessions are gone: a statement of it that is still under
 * way would take something for another lease.
 */
export async function buryWorker({ pool, schema }: FaultDatabase, workerId: string): Promise<void> {
  await comes(`the sessions of ${workerId} are gone`, async () => {
    const { rows } = await pool.query('select 1 from pg_stat_activity where application_name = $1', [
      sessionsOf(schema, workerId),
    ])
    return rows.length === 0
  })
  await lapseLeases(pool, workerId, schema)
}

/** How many deliveries are in which state: `{ DONE: 20 }`. */
export async function countStates({ pool, schema }: FaultDatabase): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ status: string; count: string }>(
    `select status, count(*) from ${schema}.outbox_delivery group by status`,
  )
  return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]))
}

/** Waits until so many deliveries are DONE and none is in any other state. */
export async function allDone(database: FaultDatabase, count: number): Promise<void> {
  await comes(`all ${count} deliveries are done`, async () => {
    const { DONE = 0, ...rest } = await countStates(database)
    return DONE === count && Object.keys(rest).length === 0
  })
}

/** What the checker says of the history so far: of all workers, or of one where several have subscriptions of their own. */
export async function historyOf(
  { witness, schema }: FaultDatabase,
  committed: readonly PublishedEvent[],
  worker?: string,
): Promise<HistoryReport> {
  const handled = await readHistory(witness, schema)
  return checkHistory(
    committed,
    worker === undefined ? handled : handled.filter((event) => event.worker === worker),
  )
}

/** How often something was handled. */
export async function countHandled({ witness, schema }: FaultDatabase): Promise<number> {
  const { rows } = await witness.query<{ count: string }>(`select count(*) from ${schema}.history`)
  return Number(rows[0]?.count)
}

/** Waits until a subscription has joined, so that ordered ones are served too. */
export async function joined({ pool, schema }: FaultDatabase, name: string): Promise<void> {
  await comes(`${name} is active`, async () => {
    const { rows } = await pool.query(
      `select 1 from ${schema}.outbox_subscription where name = $1 and state = 'active'`,
      [name],
    )
    return rows.length === 1
  })
}
