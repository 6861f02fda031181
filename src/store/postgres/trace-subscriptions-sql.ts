import type { QuotedSchema } from './identifiers.ts'
import { redriveColumn } from './redrive-at.ts'
import { timeColumn } from './time-column.ts'

/** How far the fresh ones of a lane are looked through for one of the same key. */
const FRESH_LOOKED_AT = 10_000

// The first of its key that has not ended. Held ones are indexed by key, those in hand are few, fresh ones are looked
// through from the oldest, up to a bound.
const firstOfKey = (schema: QuotedSchema): string => `
  select b.event_id, b.status from (
    (select b.id, b.event_id, b.status from ${schema}.outbox_delivery b
      where b.subscription_id = d.subscription_id and b.lane = d.lane and b.ordering_key = d.ordering_key and b.held
        and b.id < d.id
      order by b.id limit 1)
    union all
    (select b.id, b.event_id, b.status from ${schema}.outbox_in_hand b
      where b.subscription_id = d.subscription_id and b.lanes @> array[d.lane] and b.ordering_key = d.ordering_key
        and b.id < d.id
      order by b.id limit 1)
    union all
    (select f.id, f.event_id, f.status from (
       select b.id, b.event_id, b.status, b.ordering_key from ${schema}.outbox_delivery b
        where b.subscription_id = d.subscription_id and b.lane = d.lane and b.fresh
          and b.id + 0 < d.id
        order by b.id + 0 limit ${FRESH_LOOKED_AT}) f
      where f.ordering_key = d.ordering_key
      order by f.id limit 1)) b
   where d.status = 'PENDING' and d.ordering_key is not null
   order by b.id limit 1`

/** How event $1 stands with every subscription that takes it or has a delivery of it, and with those that do not. */
export const traceSubscriptionsSql = (schema: QuotedSchema): string => `
  select s.name, s.state,
         s.state <> 'joining' or s.lanes = 0
           or coalesce(s.served_to is not null and pg_visible_in_snapshot(e.xid, s.joined_snapshot), false),
         s.paused_by, ${timeColumn('s.paused_at')},
         exists (select 1 from ${schema}.outbox_worker w
                  where w.until > clock_timestamp() and w.subscription_ids @> array[s.id]),
         ${schema}.outbox_matches(s.stream_like, s.event_types, e.stream, e.event_type)
           and not exists (select 1 from ${schema}.outbox_stand_in v
                            where v.event_id = e.event_id and v.subscription_id <> s.id),
         exists (select 1 from ${schema}.outbox_scope k
                  where k.subscription_id = s.id
                    and ${schema}.outbox_matches(k.stream_like, k.event_types, e.stream, e.event_type)
                    and (k.start_from = 'beginning' or e.created_at >= k.start_at or k.began_snapshot is null
                         or not pg_visible_in_snapshot(e.xid, k.began_snapshot))),
         d.status, d.attempt_count, d.max_attempts, d.suspect,
         case when d.next_retry_at < 'infinity' then ${timeColumn('d.next_retry_at')} end,
         d.next_retry_at < 'infinity' and d.next_retry_at > clock_timestamp(),
         d.locked_by, ${timeColumn('d.locked_until')}, d.locked_until < clock_timestamp(),
         d.last_error_code, d.last_error_message, ${timeColumn('d.processed_at')},
         b.event_id, b.status, k.redrive_at, r.event_id,
         l.id, ${timeColumn('l.failed_at')}, l.resolved, l.resolved_by, ${redriveColumn('l')},
         case when pg_visible_in_snapshot(e.xid, t.snapshot) then 'past' when t.snapshot is not null then 'ahead' end
    from ${schema}.outbox_event e
   cross join ${schema}.outbox_subscription s
    left join ${schema}.outbox_stream t on t.subscription_id = s.id
    left join ${schema}.outbox_delivery d
      on d.id = e.id and d.subscription_id = s.id and d.event_id = e.event_id
    left join lateral (${firstOfKey(schema)}) b on true
    left join lateral (
      select ${redriveColumn('k')} as redrive_at from ${schema}.outbox_dead_letter k
       where b.status = 'DEAD' and k.event_id = b.event_id and k.subscription_id = s.id
       order by k.id desc limit 1) k on true
    left join lateral (
      select r.event_id from ${schema}.outbox_delivery r
       where r.id = e.id and r.subscription_id = s.id and r.event_id <> e.event_id
         and exists (select 1 from ${schema}.outbox_stand_in v where v.event_id = r.event_id)) r on true
    left join lateral (
      select l.id, l.failed_at, l.resolved, l.resolved_by, l.redrive_at from ${schema}.outbox_dead_letter l
       where l.event_id = e.event_id and l.subscription_id = s.id
       order by l.id desc limit 1) l on true
   where e.event_id = $1 and (s.state <> 'retired' or d.id is not null or r.event_id is not null)
   order by s.name, s.id`
