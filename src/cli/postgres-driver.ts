import type { Pool } from 'pg'
import { property, textProperty } from '../runtime/property.ts'
import { sqlState } from '../runtime/sql-state.ts'
import { describeError } from '../runtime/text.ts'
import { CliError } from './cli-error.ts'

/** A pool that has connected at least once, and where it leads. */
export interface OpenPool {
  readonly pool: Pool
  /** user@host:port/database */
  readonly address: string
}

/** How a pool is opened. */
export interface OpenPoolOptions {
  readonly url: string
  readonly connections: number
}

type Driver = typeof import('pg')['default']

const CONNECT_TIMEOUT_MS = 10_000
const SCHEMES = /^(?:postgres|postgresql|socket):/i

/** Connects with the driver of the user's project. @throws CliError that says where, and what to do about it. */
export async function openPool({ url, connections }: OpenPoolOptions): Promise<OpenPool> {
  const pg = await loadDriver()
  if (!SCHEMES.test(url)) throw new CliError('USAGE', (messages) => messages.errors.invalidUrl)
  const settings = {
    connectionString: url,
    max: connections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'commitpost',
  }
  const address = addressOf(pg, settings)
  const pool = new pg.Pool(settings)
  // What breaks an idle connection is met again, and reported, by the next statement.
  pool.on('error', () => undefined)
  try {
    const client = await pool.connect()
    client.release()
    return { pool, address }
  } catch (error) {
    await pool.end()
    throw connectionFailure(error, address)
  }
}

async function loadDriver(): Promise<Driver> {
  try {
    const module = await import('pg')
    return module.default
  } catch (cause) {
    if (textProperty(cause, 'code') !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new CliError('DRIVER_MISSING', (messages) => messages.errors.driverMissing, { cause })
  }
}

/** A client that is never connected: it knows what the driver makes of the address and of the environment. */
function addressOf(pg: Driver, settings: { readonly connectionString: string }): string {
  try {
    const { user, host, port, database } = new pg.Client(settings)
    return `${user ?? ''}@${host}:${port}/${database ?? ''}`
  } catch (cause) {
    throw new CliError('USAGE', (messages) => messages.errors.invalidUrl, { cause })
  }
}

/** A server that answered has refused; all else means that none was reached. */
function connectionFailure(error: unknown, address: string): CliError {
  const answered = sqlState(error) !== null
  const reason = reasonOf(error)
  return answered
    ? new CliError('DATABASE_REFUSED', (messages) => messages.errors.refused(address, reason), {
        cause: error,
      })
    : new CliError('DATABASE_UNREACHABLE', (messages) => messages.errors.unreachable(address, reason), {
        cause: error,
      })
}

/** A host with several addresses fails once for each of them. */
function reasonOf(error: unknown): string {
  const each = property(error, 'errors')
  if (Array.isArray(each) && each.length > 0) return each.map(reasonOf).join('; ')
  return textProperty(error, 'message') || describeError(error)
}
