import type pg from 'pg'
import { createOutboxDatabase, type OutboxDatabase } from '../store/postgres/fixtures.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { startTestServer, type TestServer } from '../support/test-server.ts'
import { fitForWorkers } from '../support/worker-url.ts'

const CHAINS = ['outbox_operator_log_head', 'outbox_export_head']
/** What holds rows from the first: the heads of the chains begin anew, and no scene writes to the others. */
const BEGUN_WITH_ROWS = [...CHAINS, 'outbox_migration', 'outbox_monitor']

// By the catalogue, so that no table of a later migration is forgotten. Only query_to_xml runs a text that a statement has made.
const TABLES = `
  select c.relname as name,
         query_to_xml(format('select 1 from %I.%I limit 1', n.nspname, c.relname), true, true, '')::text = '' as empty
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = $1 and c.relkind = 'r'
   order by 1`

/** A schema that scenes are played in, one after another. */
export interface SeamSchema extends OutboxDatabase {
  /** How the worker of a process connects. */
  readonly workerUrl: string
  /** Connections of processes that nothing befalls. They stay from scene to scene: a new one plans every statement anew. */
  readonly bystanders: pg.Pool
  /** The tables that no row was in when it was made. */
  readonly emptied: readonly string[]
}

const free: SeamSchema[] = []
const all: SeamSchema[] = []
let starting: Promise<TestServer> | undefined

/** An empty schema with a table for the effects of handlers. Making one takes longer than most scenes. */
export async function takeSchema(): Promise<SeamSchema> {
  const used = free.pop()
  if (used !== undefined) return used
  // Its own: what registers here waits for every older transaction of the server, and other tests' would be among them.
  starting ??= startTestServer()
  const database = await createOutboxDatabase({ connections: 3, server: await starting })
  const workerUrl = fitForWorkers(database.url)
  const bystanders = sturdyPool({ connectionString: workerUrl, max: 10 })
  await database.pool.query(
    'create table effect (n integer not null, event_id uuid not null, worker text not null)',
  )
  const db = { ...database, workerUrl, bystanders, emptied: await emptyTables(database) }
  all.push(db)
  return db
}

async function emptyTables({ pool, schema }: OutboxDatabase): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string; empty: boolean }>(TABLES, [schema])
  const strangers = rows.filter(({ name, empty }) => !empty && !BEGUN_WITH_ROWS.includes(name))
  if (strangers.length > 0) {
    const names = strangers.map(({ name }) => name).join(', ')
    throw new Error(`A new schema has rows in ${names}: say how they are to be set back between two scenes`)
  }
  return rows.filter(({ empty }) => empty).map(({ name }) => name)
}

/**
 * Gives a schema back that nobody uses any more. What guards its tables sleeps for the transaction only: to switch
 * triggers off and on would have every session read the tables' descriptions again.
 */
export async function giveSchemaBack(db: SeamSchema): Promise<void> {
  const empty = db.emptied.map((table) => `delete from ${table};`).join('')
  const anew = CHAINS.map((head) => `update ${head} set entries = 0, hash = repeat('0', 64);`).join('')
  await db.pool.query(
    `begin; drop table if exists seam_archive; set local session_replication_role = replica; ${empty} ${anew} commit`,
  )
  free.push(db)
}

/** Drops all of them, with their server. */
export async function dropSchemas(): Promise<void> {
  await Promise.all(all.flatMap((db) => [db.pool.end(), db.bystanders.end()]))
  await (await starting)?.[Symbol.asyncDispose]()
}
