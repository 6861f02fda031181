import type { ProofExceptions, SubscriptionProof } from '../proof-store.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import type { StandIns } from './read-stand-ins.ts'
import { impossible, unleased } from './verify-sql.ts'
import type { PositionRange } from './verify-window.ts'

// Every event, one by one. `wants`: it must have a delivery. `may_have`: it may have one, where nothing tells.
//
// An event whose id this server has not come to is of another one, from a restored backup: there only its time tells
// whether it was written before the scope began. One that was written after that, whatever its id says, may have one too:
// the scope itself may be from another server.
// An event that had not ended when the subscription was retired may have one: its publisher may not have seen that,
// unless its id is above the barrier that was taken afterwards.
const scopedEvents = (schema: QuotedSchema): string => `
  scoped as materialized (
    select e.event_id, e.id, e.xid, t.*
      from ${schema}.outbox_event e
     cross join lateral (
       select bool_or(w.wants) as wants, bool_or(w.wants or w.may_have) as may_have
         from ${schema}.outbox_scope k
        cross join lateral (
          select case when e.xid >= (select a.next_xid from asked a) then e.created_at < k.began_at
                      else pg_visible_in_snapshot(e.xid, k.began_snapshot) end as was_before) b
        cross join lateral (
          select (k.start_from = 'beginning' or coalesce(e.created_at >= k.start_at, false) or not b.was_before)
                 as started) v
        cross join lateral (
          select not k.abandoned and k.began_snapshot is not null and v.started
                 and (k.ended_snapshot is null or pg_visible_in_snapshot(e.xid, k.ended_snapshot)) as wants,
                 (k.began_snapshot is null or v.started or e.created_at >= k.began_at)
                 and (k.ended_snapshot is null or pg_visible_in_snapshot(e.xid, k.ended_snapshot)
                      or (select a.barrier is null or e.xid <= a.barrier or e.xid >= a.next_xid from asked a))
                 as may_have) w
        where k.subscription_id = $3
          and ${schema}.outbox_matches(k.stream_like, k.event_types, e.stream, e.event_type)) t
     where e.id between $1 and $2 and e.event_id <> all ($5::uuid[]))`

// Each with its delivery, where there is one. One that reads the log has none of what it is past, by its recorded snapshot,
// and need not have one of what comes after. What the sweep of a joining subscription has still to bring is told by the
// same bounds as in sweep-sql.ts.
const comparedRows = (schema: QuotedSchema): string => `
  compared as materialized (
    select coalesce(e.id, d.id) as id, coalesce(e.event_id, d.event_id) as event_id,
           coalesce(e.wants, false) as wants, coalesce(e.may_have, false) as may_have,
           d.id is not null as is_there,
           d.id is not null and (d.is_unleased or ${impossible('d')} or (select a.is_removed from asked a)) as is_impossible,
           (select a.is_joining and (a.barrier is null or e.xid <= a.barrier or e.xid >= a.next_xid)
                   and case a.start_from
                         when 'now' then coalesce(not pg_visible_in_snapshot(e.xid, a.joined_snapshot), true)
                         else a.swept_to is null or e.event_id > a.swept_to end
              from asked a) as is_swept_for,
           (select pg_visible_in_snapshot(e.xid, a.streamed_snapshot) from asked a) as is_streamed
      from scoped e
      full join (
        select d.id, coalesce(v.original, d.event_id) as event_id, d.status, d.held,
               d.last_attempt_at is null as is_untried, ${unleased(schema, 'd')} as is_unleased
          from ${schema}.outbox_delivery d
          left join unnest($5::uuid[], $6::uuid[]) as v(event_id, original) on v.event_id = d.event_id
         where d.subscription_id = $3 and d.id between $1 and $2) d
        on d.id = e.id and d.event_id = e.event_id)`

const compareSql = (schema: QuotedSchema): string => `
  with asked as materialized (
    select s.id is null as is_removed, s.state = 'joining' as is_joining, s.start_from, s.joined_snapshot, s.swept_to, s.barrier,
           pg_snapshot_xmax(pg_current_snapshot()) as next_xid, t.snapshot as streamed_snapshot
      from (select $3::int as id) asked_for
      left join ${schema}.outbox_subscription s on s.id = asked_for.id
      left join ${schema}.outbox_stream t on t.subscription_id = asked_for.id),${scopedEvents(schema)},${comparedRows(schema)},
  judged as (
    select c.id, c.event_id,
           case when c.wants and not c.is_there
                then case when c.is_streamed then 'streamed'
                          when c.is_swept_for or not c.is_streamed then 'awaited' else 'missing' end
                when c.is_there and not c.may_have then 'surplus'
                when c.wants or c.is_there then 'matched' end as verdict
      from compared c
    union all
    select c.id, c.event_id, 'impossible' from compared c where c.is_impossible)
  select j.verdict, count(*),
         to_json((array_agg(j.event_id order by j.id) filter (where j.verdict not in ('matched', 'streamed')))[1:$4])
    from judged j where j.verdict is not null group by j.verdict`

/** What a look at every event and every delivery of one subscription comes to. */
export type Comparison = Pick<
  SubscriptionProof,
  'matched' | 'streamed' | 'awaited' | 'missing' | 'surplus' | 'impossible'
>

/** Compares the events that a subscription is meant to have with the deliveries it has, one by one. */
export async function compareDeliveries(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionId: number,
  { eventIds, originals }: StandIns,
  { first, last }: PositionRange,
  most: number,
): Promise<Comparison> {
  const values = [first, last, subscriptionId, most, eventIds, originals]
  const rows = await rawQuery(client, compareSql(schema), values)
  const found = new Map(
    rows.map(([verdict, count, ids]) => [
      verdict,
      { count: Number(count), eventIds: JSON.parse(ids ?? '[]') as readonly string[] },
    ]),
  )
  const of = (verdict: string): ProofExceptions => found.get(verdict) ?? { count: 0, eventIds: [] }
  const missing = of('missing')
  const streamed = of('streamed').count
  return {
    // What is missing is meant to be there.
    matched: of('matched').count + missing.count + streamed,
    streamed,
    awaited: of('awaited').count,
    missing,
    surplus: of('surplus'),
    impossible: of('impossible'),
  }
}
