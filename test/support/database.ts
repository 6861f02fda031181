import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

/** A schema of its own on the server that the test run shares. */
export interface TestDatabase extends AsyncDisposable {
  /** The schema, `t_<random>`: first in the search path of every connection of `pool` and `url`. */
  readonly schema: string
  /** Connects to the same schema, for clients of the test's own and for other processes. */
  readonly url: string
  readonly pool: pg.Pool
  /** Closes the pool and drops the schema with all that is in it. */
  drop(): Promise<void>
}

/** What may be chosen about a test's database. */
export interface TestDatabaseOptions {
  /**
   * How many connections the pool may open.
   * @default 10
   */
  readonly connections?: number
}

/** Makes an empty schema that no other test sees. Call `drop()` when done, or declare it with `await using`. */
export async function createTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const schema = `t_${randomBytes(6).toString('hex')}`
  const url = withSearchPath(inject('databaseUrl'), schema)
  const pool = new pg.Pool({ connectionString: url, max: options.connections ?? 10 })
  pool.on('error', () => undefined) // an idle connection that the test itself cut
  await pool.query(`create schema ${schema}`)
  const drop = async (): Promise<void> => {
    await pool.end()
    await dropSchema(schema)
  }
  return { schema, url, pool, drop, [Symbol.asyncDispose]: drop }
}

/**
 * A transaction that a failed test left open would hold up all that joins on the server: it is ended in the end. No
 * shorter, or workers would set another time for their sessions.
 */
const ABANDONED_MS = 60_000

function withSearchPath(serverUrl: string, schema: string): string {
  const url = new URL(serverUrl)
  const settings = `-c search_path=${schema},public -c idle_in_transaction_session_timeout=${ABANDONED_MS}`
  url.searchParams.set('options', settings)
  return url.href
}

/** What a test left running would hold its locks for ever: backends that still use the schema's tables are ended. */
async function dropSchema(schema: string): Promise<void> {
  const pool = droppingPool()
  await pool.query(
    `select pg_terminate_backend(l.pid) from pg_locks l join pg_class c on c.oid = l.relation
     where c.relnamespace = $1::regnamespace and l.pid <> pg_backend_pid()`,
    [schema],
  )
  await pool.query(`drop schema if exists ${schema} cascade`)
}

let dropping: pg.Pool | undefined

/** One for all tests of a file: a new session takes a quarter longer, to learn what the server's catalogues hold. */
function droppingPool(): pg.Pool {
  if (dropping !== undefined) return dropping
  dropping = new pg.Pool({ connectionString: inject('databaseUrl'), allowExitOnIdle: true })
  dropping.on('error', () => undefined) // an idle connection that a test cut
  return dropping
}
