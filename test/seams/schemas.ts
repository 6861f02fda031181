import type pg from 'pg'
import { createOutboxDatabase, type OutboxDatabase } from '../store/postgres/fixtures.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { startTestServer, type TestServer } from '../support/test-server.ts'

const CHAINS = ['outbox_operator_log_head', 'outbox_export_head']
const EMPTIED = [
  'outbox_event',
  'outbox_delivery',
  'outbox_operator_log',
  'outbox_export',
  'outbox_archived',
  'outbox_subscription',
  'outbox_lane',
  'outbox_worker',
  'outbox_dead_letter',
  'outbox_amendment',
  'outbox_redrive_plan',
  'outbox_redrive_item',
  'outbox_sequence',
  'outbox_unmatched',
  'outbox_inbox',
  'outbox_archive',
  'outbox_retention_run',
  'outbox_retention_policy',
  'effect',
]

/** A schema that scenes are played in, one after another. */
export interface SeamSchema extends OutboxDatabase {
  /** How the worker of a process connects. */
  readonly workerUrl: string
  /** Connections of processes that nothing befalls. They stay from scene to scene: a new one plans every statement anew. */
  readonly bystanders: pg.Pool
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
  const db = { ...database, workerUrl, bystanders: sturdyPool({ connectionString: workerUrl, max: 10 }) }
  all.push(db)
  await db.pool.query(
    'create table effect (n integer not null, event_id uuid not null, worker text not null)',
  )
  return db
}

/**
 * Gives a schema back that nobody uses any more. What guards its tables sleeps for the transaction only: to switch
 * triggers off and on would have every session read the tables' descriptions again.
 */
export async function giveSchemaBack(db: SeamSchema): Promise<void> {
  const empty = EMPTIED.map((table) => `delete from ${table};`).join('')
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

/** Sessions as a worker's own are set. In others each statement has a transaction, and how many there are is chance. */
function fitForWorkers(url: string): string {
  const fit = new URL(url)
  const options = fit.searchParams.get('options') ?? ''
  fit.searchParams.set('options', `${options} -c enable_partition_pruning=off`.trim())
  return fit.href
}
