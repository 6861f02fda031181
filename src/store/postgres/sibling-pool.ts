import type { PgPool, PgPoolClient } from './client.ts'
import { withSessionSettings } from './session-settings.ts'

/** Listening, settling, heartbeat and housekeeping may overlap; more would only wait for the database. */
const WORKER_CONNECTIONS = 4
/** One is enough for a subscription, whose claims follow each other. */
const CLAIM_CONNECTIONS = 2

interface PoolWithOptions extends PgPool {
  readonly options: Readonly<Record<string, unknown>>
  readonly constructor: new (options: Record<string, unknown>) => OwnPool
}

interface OwnPool extends Omit<PgPool, 'on'> {
  on?(event: 'error', listener: (error: Error) => void): unknown
  on?(event: 'connect', listener: (client: PgPoolClient) => void): unknown
}

/** The connections of one worker. */
export interface WorkerPool {
  readonly pool: PgPool
  /**
   * For claims alone, where there are such. The first claim of a session reads the catalogue and plans, which takes ten times
   * as long as a claim, and its first ones wait for the disk: among others, claims would meet a new session now and then,
   * and what was published meanwhile waits with them.
   */
  readonly claims?: PgPool
  /** Whether closing the worker closes them. */
  readonly own: boolean
}

/** Opens the connections of a worker. */
export function workerPool(pool: PgPool, onError: (error: Error) => void): WorkerPool {
  const connections = siblingPool(pool, onError, WORKER_CONNECTIONS)
  if (!connections.own) return connections
  return { ...connections, claims: siblingPool(pool, onError, CLAIM_CONNECTIONS).pool }
}

/**
 * Opens a second pool with the options of the first, so that handlers which use up the application's pool cannot keep
 * a worker from extending its leases. A pool that cannot be copied is shared.
 */
export function siblingPool(pool: PgPool, onError: (error: Error) => void, connections: number): WorkerPool {
  if (!hasOptions(pool)) return { pool: withSessionSettings(pool, false), own: false }
  const options = withOptions(pool, {
    max: connections,
    // A half-open connection is noticed in a minute, not after the two hours of most systems.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // Nor does one keep the process from ending: its goodbye is never answered. A worker at work has timers for that.
    allowExitOnIdle: true,
    // No call waits for ever: a stalled server must not hang a worker's loops.
    query_timeout: pool.options['query_timeout'] ?? 30_000,
    connectionTimeoutMillis: pool.options['connectionTimeoutMillis'] ?? 10_000,
  })
  const sibling = new pool.constructor(options)
  sibling.on?.('error', onError)
  // The server may end a connection in the same breath in which it accepts it, before whoever asked for it can listen.
  sibling.on?.('connect', (client) => client.on?.('error', onError))
  return { pool: withSessionSettings(sibling, true), own: true }
}

/** The options of a pool with these in their place; null where the pool does not show them. */
export function copiedOptions(
  pool: PgPool,
  changes: Readonly<Record<string, unknown>>,
): Record<string, unknown> | null {
  return hasOptions(pool) ? withOptions(pool, changes) : null
}

function withOptions(
  pool: PoolWithOptions,
  changes: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const options: Record<string, unknown> = { ...pool.options, ...changes }
  // pg hides the password from enumeration so that it is not logged by accident; it has to be carried over by hand.
  if ('password' in pool.options) {
    Object.defineProperty(options, 'password', {
      value: pool.options['password'],
      enumerable: false,
      configurable: true,
      writable: true,
    })
  }
  return options
}

function hasOptions(pool: PgPool): pool is PoolWithOptions {
  return 'options' in pool && typeof pool.options === 'object' && pool.options !== null
}
