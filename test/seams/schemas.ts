import { createOutboxDatabase, type OutboxDatabase } from '../store/postgres/fixtures.ts'

const GUARDED = [
  'outbox_event',
  'outbox_delivery',
  'outbox_operator_log',
  'outbox_export',
  'outbox_archived',
  'outbox_subscription',
]
const CHAINS = ['outbox_operator_log_head', 'outbox_export_head']
const EMPTIED = [
  ...GUARDED,
  'outbox_lane',
  'outbox_worker',
  'outbox_dead_letter',
  'outbox_sequence',
  'outbox_unmatched',
  'outbox_inbox',
  'outbox_archive',
  'outbox_retention_run',
  'outbox_retention_policy',
  'effect',
]

const free: OutboxDatabase[] = []
const all: OutboxDatabase[] = []

/** An empty schema with a table for the effects of handlers. Making one takes longer than most scenes. */
export async function takeSchema(): Promise<OutboxDatabase> {
  const used = free.pop()
  if (used !== undefined) return used
  const db = await createOutboxDatabase({ connections: 3 })
  all.push(db)
  await db.pool.query(
    'create table effect (n integer not null, event_id uuid not null, worker text not null)',
  )
  return db
}

/** Gives a schema back that nobody uses any more. */
export async function giveSchemaBack(db: OutboxDatabase): Promise<void> {
  const switchTriggers = (to: string): string =>
    GUARDED.map((table) => `alter table ${table} ${to} trigger user;`).join('')
  const empty = EMPTIED.map((table) => `delete from ${table};`).join('')
  const anew = CHAINS.map((head) => `update ${head} set entries = 0, hash = repeat('0', 64);`).join('')
  await db.pool.query(
    `begin; drop table if exists seam_archive; ${switchTriggers('disable')} ${empty} ${anew} ${switchTriggers('enable')} commit`,
  )
  free.push(db)
}

/** Drops all of them. */
export async function dropSchemas(): Promise<void> {
  await Promise.all(all.map((db) => db.drop()))
}
