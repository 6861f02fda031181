import type { RawRow } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// Whoever reads the log says every few seconds how far he is. What is younger than this may be handled, and only not
// recorded: with thousands of events a second there are always some.
const RECORDED_WITHIN = `interval '10 seconds'`

/**
 * What subscriptions that read the log are not recorded as past, by stream, of at most $1 events of each, the oldest first;
 * and how many of them have waited for $2 milliseconds. What failed has a delivery, and is counted with these. By the
 * transactions that the recorded snapshot does not show as ended: those that were open, and those that came later.
 */
export const unreadSql = (schema: QuotedSchema): string => `
  select s.name, e.stream, count(*),
         count(*) filter (where e.since < clock_timestamp() - $2::float8 * interval '1 millisecond'),
         extract(epoch from clock_timestamp() - min(e.since))::float8
    from ${schema}.outbox_stream t
    join ${schema}.outbox_subscription s on s.id = t.subscription_id and s.state <> 'retired'
   cross join lateral (
     select w.id, w.stream, w.event_type, w.created_at, greatest(w.created_at, t.created_at) as since
       from ((select e.id, e.stream, e.event_type, e.created_at
                from pg_snapshot_xip(t.snapshot) as x(xid)
               cross join lateral (
                 select o.id, o.stream, o.event_type, o.created_at from ${schema}.outbox_event o
                  where o.xid = x.xid offset 0) e
               limit $1)
             union all
             (select e.id, e.stream, e.event_type, e.created_at from ${schema}.outbox_event e
               where e.xid >= pg_snapshot_xmax(t.snapshot)
               order by e.xid limit $1)) w) e
   where ${schema}.outbox_matches(s.stream_like, s.event_types, e.stream, e.event_type)
     and coalesce(e.created_at >= t.start_at, true)
     and e.since < clock_timestamp() - ${RECORDED_WITHIN}
     and not exists (select 1 from ${schema}.outbox_delivery d
                      where d.id = e.id and d.subscription_id = t.subscription_id offset 0)
   group by s.name, e.stream`

/** Events of one stream that a subscription which reads the log is not past. */
export interface Unread {
  readonly subscription: string
  readonly stream: string
  readonly count: number
  readonly stuck: number
  readonly oldestSeconds: number
}

export function toUnread(row: RawRow): Unread {
  return {
    subscription: row[0] as string,
    stream: row[1] as string,
    count: Number(row[2]),
    stuck: Number(row[3]),
    oldestSeconds: Number(row[4]),
  }
}
