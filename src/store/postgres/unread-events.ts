import type { RawRow } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// Whoever reads the log says every few seconds how far he is. What is younger than this may be handled, and only not
// recorded: with thousands of events a second there are always some.
const RECORDED_WITHIN = `interval '10 seconds'`

/**
 * What subscriptions that read the log are not recorded as past, by stream, of at most $1 events of each, the oldest first;
 * and how many of them have waited for $2 milliseconds. What failed has a delivery, and is counted with these. By the
 * transactions that the recorded snapshot does not show as ended: those that were open, and those that came later. A look
 * that ended at the limit says so, whether or not the last event is one that the subscription waits for.
 */
const unreadSql = (schema: QuotedSchema): string => `
  select s.name, e.stream, count(*) filter (where e.waits),
         count(*) filter (where e.waits and e.since < clock_timestamp() - $2::float8 * interval '1 millisecond'),
         coalesce(extract(epoch from clock_timestamp() - min(e.since) filter (where e.waits))::float8, 0),
         bool_or(e.is_last)
    from ${schema}.outbox_stream t
    join ${schema}.outbox_subscription s on s.id = t.subscription_id and s.state <> 'retired'
   cross join lateral (
     select w.stream, w.since, w.is_last and w.since < clock_timestamp() - ${RECORDED_WITHIN} as is_last,
            ${schema}.outbox_matches(s.stream_like, s.event_types, w.stream, w.event_type)
              and coalesce(w.created_at >= t.start_at, true)
              and w.since < clock_timestamp() - ${RECORDED_WITHIN}
              and not exists (select 1 from ${schema}.outbox_delivery d
                               where d.id = w.id and d.subscription_id = t.subscription_id offset 0) as waits
       from (select r.*, greatest(r.created_at, t.created_at) as since
               from ((select o.*, row_number() over () = $1 as is_last
                        from (select e.id, e.stream, e.event_type, e.created_at
                                from pg_snapshot_xip(t.snapshot) as x(xid)
                               cross join lateral (
                                 select o.id, o.stream, o.event_type, o.created_at from ${schema}.outbox_event o
                                  where o.xid = x.xid offset 0) e
                               limit $1) o)
                     union all
                     (select l.*, row_number() over () = $1
                        from (select e.id, e.stream, e.event_type, e.created_at from ${schema}.outbox_event e
                               where e.xid >= pg_snapshot_xmax(t.snapshot)
                               order by e.xid limit $1) l)) r) w) e
   group by s.name, e.stream
  having bool_or(e.waits or e.is_last)`

/** Events of one stream that a subscription which reads the log is not past. */
export interface Unread {
  readonly subscription: string
  readonly stream: string
  readonly count: number
  readonly stuck: number
  readonly oldestSeconds: number
}

/** What was found, and the subscriptions of which more may wait: their look ended at the limit. */
interface UnreadEvents {
  readonly unread: readonly Unread[]
  readonly capped: ReadonlySet<string>
}

/** What to look for. */
interface UnreadLook {
  /** How many events of each subscription are looked at. */
  readonly most: number
  readonly stuckAfterMs: number
}

/** Reads what waits in the log. `read` sees to it that the server takes the heads of indexes. */
export async function unreadEvents(
  read: (sql: string, values: readonly unknown[]) => Promise<readonly RawRow[]>,
  schema: QuotedSchema,
  { most, stuckAfterMs }: UnreadLook,
): Promise<UnreadEvents> {
  const rows = await read(unreadSql(schema), [most, stuckAfterMs])
  return {
    unread: rows.map(toUnread).filter(({ count }) => count > 0),
    capped: new Set(rows.filter((row) => row[5] === 't').map((row) => row[0] as string)),
  }
}

function toUnread(row: RawRow): Unread {
  return {
    subscription: row[0] as string,
    stream: row[1] as string,
    count: Number(row[2]),
    stuck: Number(row[3]),
    oldestSeconds: Number(row[4]),
  }
}
