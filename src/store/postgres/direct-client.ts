import { property } from '../../runtime/property.ts'
import { RefusedError } from '../../runtime/refused-error.ts'
import type { ReplicationClient } from '../../stream/postgres/replication.ts'
import type { PgClient, PgPool } from './client.ts'
import { copiedOptions } from './sibling-pool.ts'

/** A connection outside any pool. */
export interface DirectClient extends PgClient {
  connect(): Promise<unknown>
  end(): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** Opens a connection that can read the server's log, with the settings of the pool. */
export function openReplication(pool: PgPool): Promise<ReplicationClient> {
  return open<ReplicationClient>(pool, { replication: 'database' })
}

/** Opens a connection of one's own, with the settings of the pool, whose statements may take their time. */
export async function openDirect(pool: PgPool): Promise<DirectClient> {
  const client = await open<DirectClient>(pool, {})
  await client.query(
    'set statement_timeout = 0; set idle_session_timeout = 0; set default_transaction_read_only = off',
  )
  return client
}

interface Connectable {
  connect(): Promise<unknown>
  on(event: 'error', listener: (error: Error) => void): unknown
}

async function open<Client extends Connectable>(
  pool: PgPool,
  changes: Readonly<Record<string, unknown>>,
): Promise<Client> {
  const make = property(pool, 'Client')
  const options = copiedOptions(pool, {
    // A slot may take as long to make as the longest transaction under way, and the log never ends.
    query_timeout: 0,
    statement_timeout: 0,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 10_000,
    ...changes,
  })
  if (typeof make !== 'function' || options === null) {
    throw new RefusedError(
      'stream-without-pool',
      'The log stream opens connections of its own with the settings of the pool, which only a pg.Pool has. ' +
        'Give postgresStore a pg.Pool.',
    )
  }
  const client = Reflect.construct(make, [options]) as Client
  // Whatever breaks it is met again by the next statement, or told to whoever reads the log.
  client.on('error', () => undefined)
  await client.connect()
  return client
}
