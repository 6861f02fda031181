import { type PgClient, type PgPool, type RawRow, rawQuery, withClient, withTransaction } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// Taken after the registration has committed, so that every publisher whose trigger did not see the subscription has
// an older transaction id. The horizon of a snapshot is no such bound: running transactions may lie above it.
// Skips what is locked instead of waiting for it: whoever widens it now commits after this id was taken.
const raiseBarrierSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_subscription s
     set barrier = pg_current_xact_id(), updated_at = clock_timestamp()
   where s.ctid = any (array(
     select o.ctid from ${schema}.outbox_subscription o
      where o.state = 'joining' and o.barrier is null for update skip locked))`

const nextJoiningSql = (schema: QuotedSchema): string => `
  select s.id, s.start_from <> 'now', s.barrier is not null
     and pg_snapshot_xmin(pg_current_snapshot()) > s.barrier
    from ${schema}.outbox_subscription s
   where s.state = 'joining'
   order by s.id
     for update skip locked`

/** How many events one step looks at: long enough to be quick, short enough to let others in between. */
const CHUNK = 5_000

// The events of transactions that had not ended when it registered and whose trigger may not have seen it.
const sweepRecentSql = (schema: QuotedSchema): string => `
  with s as materialized (select * from ${schema}.outbox_subscription where id = $1),
  seen as materialized (
    select e.event_id, e.id, e.ordering_key, e.aggregate_type, e.aggregate_id
      from ${schema}.outbox_event e
     where e.xid >= (select pg_snapshot_xmin(s.joined_snapshot) from s) and e.xid <= (select s.barrier from s)
       and not pg_visible_in_snapshot(e.xid, (select s.joined_snapshot from s))
       and ${matches(schema)}
  ),
  ${addDeliveries(schema)}
  select true, count(*) from added`

// From the beginning or a time: every event, in steps by event id. Never by transaction id, which a restored backup
// may have in the future.
const sweepAllSql = (schema: QuotedSchema): string => `
  with s as materialized (select * from ${schema}.outbox_subscription where id = $1),
  page as materialized (
    select e.event_id, e.id, e.stream, e.event_type, e.ordering_key, e.aggregate_type, e.aggregate_id,
           e.created_at, e.xid
      from ${schema}.outbox_event e
     where e.event_id > coalesce((select s.swept_to from s), '00000000-0000-0000-0000-000000000000')
     order by e.event_id
     limit ${CHUNK}
  ),
  seen as materialized (
    select * from page e
     where ${matches(schema)}
       and ((select s.start_from from s) = 'beginning' or e.created_at >= (select s.start_at from s)
            or not pg_visible_in_snapshot(e.xid, (select s.joined_snapshot from s)))
  ),
  ${addDeliveries(schema)},
  moved as (
    update ${schema}.outbox_subscription t
       set swept_to = coalesce((select p.event_id from page p order by p.event_id desc limit 1), t.swept_to)
     where t.id = $1
    returning 1
  )
  select (select count(*) from page) < ${CHUNK}, (select count(*) from added) from moved`

function matches(schema: QuotedSchema): string {
  return `${schema}.outbox_matches((select s.stream_like from s), (select s.event_types from s), e.stream, e.event_type)`
}

function addDeliveries(schema: QuotedSchema): string {
  return `added as (
    insert into ${schema}.outbox_delivery (subscription_id, lane, id, event_id, ordering_key, max_attempts)
    select s.id,
           case when s.lanes = 0 then 0::smallint else ${schema}.outbox_lane_of(k.key, s.lanes) end,
           e.id, e.event_id, k.key, s.max_attempts
      from seen e
     cross join s
     cross join lateral (
       select ${schema}.outbox_key_of(s.order_by, e.ordering_key, e.aggregate_type, e.aggregate_id) as key) k
    on conflict do nothing
    returning 1
  )`
}

const activateSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_subscription s
     set state = 'active', generation = s.generation + 1, updated_at = clock_timestamp()
   where s.id = $1`

const stillJoiningSql = (schema: QuotedSchema): string => `
  select s.name from ${schema}.outbox_subscription s where s.state = 'joining' order by s.name`

/** Takes every joining subscription one step further. Returns the names of those that still join. */
export async function advanceJoining(pool: PgPool, schema: QuotedSchema): Promise<readonly string[]> {
  // Nearly always nothing joins: one cheap question.
  const joining = await withClient(pool, (client) => rawQuery(client, stillJoiningSql(schema), []))
  if (joining.length === 0) return []
  await withTransaction(pool, (client) => rawQuery(client, raiseBarrierSql(schema), []))
  return withTransaction(pool, async (client) => {
    for (const row of await rawQuery(client, nextJoiningSql(schema), [])) await step(client, schema, row)
    const rest = await rawQuery(client, stillJoiningSql(schema), [])
    return rest.map(([name]) => name as string)
  })
}

async function step(client: PgClient, schema: QuotedSchema, joining: RawRow): Promise<void> {
  const [id, sweepsAll, barrierPassed] = joining
  if (barrierPassed !== 't') return
  const sql = sweepsAll === 't' ? sweepAllSql(schema) : sweepRecentSql(schema)
  const [swept] = await rawQuery(client, sql, [id])
  if (swept?.[0] === 't') await rawQuery(client, activateSql(schema), [id])
}
