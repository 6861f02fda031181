import { systemIds } from '../../../src/runtime/ids.ts'
import { uuidV7At } from '../../support/install-tables.ts'
import { column, inTransaction, type OutboxDatabase, one, type Queryable } from './fixtures.ts'

const DAY_MS = 86_400_000

/** The day that it is, as periods count it. */
export const today = (db: OutboxDatabase): Promise<number> =>
  one(db.pool, 'select outbox_day_of(clock_timestamp())')

/** Whether the next day is so near that it may begin in the middle of a test. */
export const isDayNearlyOver = (db: OutboxDatabase): Promise<boolean> =>
  one(
    db.pool,
    `select outbox_day_of(clock_timestamp()) <> outbox_day_of(clock_timestamp() + interval '2 minutes')`,
  )

/** Partitions empty tables as if that had been done so many days ago, and workers had made a period for each day since. */
export async function partitionInThePast(db: OutboxDatabase, daysAgo: number): Promise<void> {
  const first = (await today(db)) - daysAgo
  await db.pool.query(
    `insert into outbox_partitioning (every, state, rest_until) values (1, 'preparing', $1)`,
    [first],
  )
  await db.pool.query('select outbox_convert_to_partitions()')
  // All that time became one period, because nobody had made any.
  const [event, delivery] = await column<string>(
    db.pool,
    `select t.name || to_char(outbox_start_of($1) at time zone 'UTC', '_YYYYMMDD')
       from (values ('outbox_event'), ('outbox_delivery')) t(name)`,
    [first],
  )
  await db.pool.query(`drop table ${event}, ${delivery}`)
  await db.pool.query(`delete from outbox_period where first_day = $1`, [first])
  await db.pool.query(
    `select outbox_make_period(d, d + 1) from generate_series($1::int, $1::int + $2::int - 1) d`,
    [first, daysAgo],
  )
}

/** The names of the partitions of a table, oldest first, and how many rows each has. */
export async function partitions(db: OutboxDatabase, table: string): Promise<readonly string[]> {
  return column(
    db.pool,
    `select t.relid::text from pg_partition_tree($1::regclass) t where t.isleaf order by
       (t.relid::text like '%rest') desc, t.relid::text`,
    [table],
  )
}

/** Publishes one event, by a plain INSERT. */
export async function insert(client: Queryable, eventId: string = systemIds.eventId()): Promise<void> {
  await client.query(
    `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
     values ($1, 'shop.order', 'OrderPlaced', 'order', '1', '{}')`,
    [eventId],
  )
}

export interface OldEvents {
  readonly daysAgo: number
  readonly count: number
  readonly stream?: string
}

/** Publishes events as it was done on that day: with ids, positions and times of it. Returns their ids. */
export async function publishedOn(db: OutboxDatabase, old: OldEvents): Promise<readonly string[]> {
  const at = new Date(Date.now() - old.daysAgo * DAY_MS)
  const ids = Array.from({ length: old.count }, () => uuidV7At(at.getTime()))
  await db.pool.query(
    `insert into outbox_event (event_id, id, stream, event_type, aggregate_type, aggregate_id, payload, created_at)
     overriding system value
     select e.id, outbox_first_position(outbox_day_of($2)) + coalesce(
              (select max(f.id) % 10000000000 from outbox_event f), 0) + e.n, $3, 'OrderPlaced', 'order', e.n::text, '{}', $2
       from unnest($1::uuid[]) with ordinality as e(id, n)`,
    [ids, at, old.stream ?? 'shop.order'],
  )
  return ids
}

/** As if these had been delivered to everybody so many days ago. */
export async function doneOn(db: OutboxDatabase, ids: readonly string[], daysAgo: number): Promise<void> {
  await inTransaction(db, async (client) => {
    await client.query('set local session_replication_role = replica')
    await client.query(
      `update outbox_delivery d set status = 'DONE', fresh = false, attempt_count = 1, held = false, next_retry_at = null,
              locked_by = null, locked_until = null, lease_token = null, processed_at = t.at, last_attempt_at = t.at,
              created_at = t.at, updated_at = t.at
         from (select now() - $2::int * interval '1 day' as at) t
        where d.event_id = any ($1::uuid[])`,
      [ids, daysAgo],
    )
  })
}
