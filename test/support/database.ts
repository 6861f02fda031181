import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { property } from '../../src/runtime/property.ts'
import { isPartitioned } from './install-tables.ts'
import { PATIENCE_MS } from './patience-ms.ts'
import { eventually } from './program.ts'
import { copySql, renameSql, urlOf } from './template-database.ts'
import type { TestServer } from './test-server.ts'

/** A schema of its own on the server that the test run shares; with tables, in a database of its own. */
export interface TestDatabase extends AsyncDisposable {
  /** The schema, `t_<random>`: first in the search path of every connection of `pool` and `url`. */
  readonly schema: string
  /** Connects to the same schema, for clients of the test's own and for other processes. */
  readonly url: string
  readonly pool: pg.Pool
  /** Closes the pool and drops the schema, or the database, with all that is in it. */
  drop(): Promise<void>
}

/** What may be chosen about a test's database. */
export interface TestDatabaseOptions {
  /**
   * How many connections the pool may open.
   * @default 10
   */
  readonly connections?: number
  /** @default the server that all tests of a run share */
  readonly server?: TestServer
}

/** Makes an empty schema that no other test sees. Call `drop()` when done, or declare it with `await using`. */
export async function createTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const schema = `t_${randomBytes(6).toString('hex')}`
  const { url } = options.server ?? sharedServer()
  const opened = openPool(url, schema, options)
  await opened.pool.query(`create schema ${schema}`)
  return droppedBy(opened, () => dropSchema(url, schema))
}

/** The same with the outbox's tables in the schema, in the layout that is tested. */
export async function createTestDatabaseWithTables(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const schema = `t_${randomBytes(6).toString('hex')}`
  const { url, template } = options.server ?? sharedServer()
  await onceUnused(() => administrators(url).query(copySql(template, schema)))
  const opened = openPool(urlOf(url, schema), schema, options)
  await opened.pool.query(renameSql(schema))
  return droppedBy(opened, () => dropDatabase(url, schema))
}

function sharedServer(): Pick<TestServer, 'url' | 'template'> {
  return {
    url: inject('databaseUrl'),
    template: inject(isPartitioned ? 'partitionedTemplate' : 'templateDatabase'),
  }
}

type Opened = Pick<TestDatabase, 'schema' | 'url' | 'pool'>

function openPool(databaseUrl: string, schema: string, { connections = 10 }: TestDatabaseOptions): Opened {
  const url = withSearchPath(databaseUrl, schema)
  const pool = new pg.Pool({ connectionString: url, max: connections })
  pool.on('error', () => undefined) // an idle connection that the test itself cut
  return { schema, url, pool }
}

function droppedBy(opened: Opened, remove: () => Promise<void>): TestDatabase {
  const drop = async (): Promise<void> => {
    await opened.pool.end()
    await remove()
  }
  return { ...opened, drop, [Symbol.asyncDispose]: drop }
}

/**
 * A transaction that a failed test left open would hold up all that joins on the server: it is ended before others lose their
 * patience. No sooner, since a test that waits for something meanwhile may have to wait long on a slow machine; and not within
 * a minute, or workers would set another time for their sessions.
 */
const ABANDONED_MS = PATIENCE_MS / 2

function withSearchPath(serverUrl: string, schema: string): string {
  const url = new URL(serverUrl)
  const settings = [`search_path=${schema},public`, `idle_in_transaction_session_timeout=${ABANDONED_MS}`]
  // A test whose statements are not sent by a worker's own sessions must not end the server of all others.
  if (isPartitioned) settings.push('enable_partition_pruning=off')
  url.searchParams.set('options', settings.map((setting) => `-c ${setting}`).join(' '))
  return url.href
}

/** What a test left running would hold its locks for ever: backends that still use the schema's tables are ended. */
async function dropSchema(serverUrl: string, schema: string): Promise<void> {
  const pool = administrators(serverUrl)
  await pool.query(
    `select pg_terminate_backend(l.pid) from pg_locks l join pg_class c on c.oid = l.relation
     where c.relnamespace = $1::regnamespace and l.pid <> pg_backend_pid()`,
    [schema],
  )
  await pool.query(`drop schema if exists ${schema} cascade`)
}

const GOODBYE_MS = 10_000

/** Whoever reads the log by a slot of it is not sent away by the server, as all others are. */
async function dropDatabase(serverUrl: string, name: string): Promise<void> {
  const pool = administrators(serverUrl)
  await pool.query(
    'select pg_terminate_backend(active_pid, $2) from pg_replication_slots where database = $1 and active',
    [name, GOODBYE_MS],
  )
  await onceUnused(() => pool.query(`drop database if exists ${name} with (force)`))
}

const OBJECT_IN_USE = '55006'

/** Copies or drops a database: the server waits five seconds for those who are sent away from it, which may take longer. */
export async function onceUnused(work: () => Promise<unknown>): Promise<void> {
  await eventually('nobody uses the database', () =>
    work().then(
      () => true,
      (error: unknown) => {
        if (property(error, 'code') === OBJECT_IN_USE) return false
        throw error
      },
    ),
  )
}

const administering = new Map<string, pg.Pool>()

/** One for all tests of a file: a new session takes a quarter longer, to learn what the server's catalogues hold. */
function administrators(serverUrl: string): pg.Pool {
  const known = administering.get(serverUrl)
  if (known !== undefined) return known
  const pool = new pg.Pool({ connectionString: serverUrl, allowExitOnIdle: true })
  pool.on('error', () => undefined) // an idle connection that a test cut, or whose server has stopped
  administering.set(serverUrl, pool)
  return pool
}
