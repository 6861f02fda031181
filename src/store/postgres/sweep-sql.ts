import type { QuotedSchema } from './identifiers.ts'

// Whoever has an id above the barrier published for it by himself; until there is one, nobody can be left out. Ids of
// another server, from a restored backup, are no bound: if it was joining there, its events are those that its snapshot
// had not seen.
const joiningRow = (schema: QuotedSchema): string => `
  s as materialized (
    select s.*, coalesce(case when pg_snapshot_xmax(s.joined_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
                              then s.barrier end, '18446744073709551615'::xid8) as last_xid
      from ${schema}.outbox_subscription s where s.id = $1)`

// An amended event is for one subscription, which has it: all others get, or got, the original.
const matches = (schema: QuotedSchema): string =>
  `${schema}.outbox_matches((select s.stream_like from s), (select s.event_types from s), e.stream, e.event_type)
       and not exists (select 1 from ${schema}.outbox_amendment a where a.event_id = e.event_id)`

const addDeliveries = (schema: QuotedSchema): string => `
  added as (
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

/**
 * The CTEs that give the joining subscription $1 the events of transactions that had not ended when its snapshot was
 * taken and whose trigger may not have seen it; `added` has a row for each. By the ids themselves: between the oldest
 * and the barrier there may be millions of others.
 */
export const sweepRecent = (schema: QuotedSchema): string => `${joiningRow(schema)},
  seen as materialized (
    select e.event_id, e.id, e.ordering_key, e.aggregate_type, e.aggregate_id
      from ${schema}.outbox_event e
     where (e.xid = any (array(select pg_snapshot_xip(s.joined_snapshot) from s))
            or (e.xid >= (select pg_snapshot_xmax(s.joined_snapshot) from s) and e.xid <= (select s.last_xid from s)))
       and ${matches(schema)}
  ),${addDeliveries(schema)}`

/**
 * The CTEs that do it from the beginning or a time: every event, `limit` at a time by event id; `page` has those that
 * were looked at. Never by transaction id, which a restored backup may have in the future.
 */
export const sweepPage = (schema: QuotedSchema, limit: number): string => `${joiningRow(schema)},
  page as materialized (
    select e.event_id, e.id, e.stream, e.event_type, e.ordering_key, e.aggregate_type, e.aggregate_id,
           e.created_at, e.xid
      from ${schema}.outbox_event e
     where e.event_id > coalesce((select s.swept_to from s), '00000000-0000-0000-0000-000000000000')
     order by e.event_id
     limit ${limit}
  ),
  seen as materialized (
    select * from page e
     where ${matches(schema)}
       and ((select s.start_from from s) = 'beginning' or e.created_at >= (select s.start_at from s)
            or (e.xid <= (select s.last_xid from s)
                and not pg_visible_in_snapshot(e.xid, (select s.joined_snapshot from s))))
  ),${addDeliveries(schema)}`
