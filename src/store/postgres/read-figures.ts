import type { FiguresRequest, SubscriptionFigures } from '../alert-store.ts'
import type { PgPool, RawRow } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { readBounded } from './read-bounded.ts'
import { type Unread, unreadEvents } from './unread-events.ts'

// What is read does not grow with the tables: of each lane as many rows from the head of each partial index as are
// counted at most, of the dead letters and of all deliveries the newest. The head of a lane are its oldest, so that
// what is counted as stuck is right up to the limit. Ages are judged by the clock that wrote the times.
const figuresSql = (schema: QuotedSchema): string => `
  with letters as materialized (
    select l.subscription_id, count(*) as open
      from (select o.subscription_id from ${schema}.outbox_dead_letter o
             where not o.resolved order by o.id desc limit $5::int) l
     group by l.subscription_id
  ),
  tried as materialized (
    select r.subscription_id, avg(r.attempt_count - 1)::float8 as mean, count(*) as n
      from (select d.subscription_id, d.attempt_count from ${schema}.outbox_delivery d
             order by d.id desc limit $5::int) r
     where r.attempt_count > 0
     group by r.subscription_id
  )
  select s.name, s.paused_by,
         least(w.pending + u.pending, $1::int), p.processing, least(w.stuck + u.stuck, $1::int),
         extract(epoch from clock_timestamp() - least(w.oldest, u.oldest))::float8,
         least(coalesce(l.open, 0), $1::int),
         case when t.n >= $3::int then t.mean end,
         k.alive,
         extract(epoch from clock_timestamp() - g.updated_at)::float8, g.gap,
         case when g.lsn is null and g.gap is not null then 0 else extract(epoch from clock_timestamp() - g.gap_at)::float8 end
    from ${schema}.outbox_subscription s
    left join ${schema}.outbox_stream g on g.subscription_id = s.id
    left join letters l on l.subscription_id = s.id
    left join tried t on t.subscription_id = s.id
${waitingSql(schema)}
   cross join lateral (
     select count(*) as processing
       from (select from ${schema}.outbox_in_hand h where h.subscription_id = s.id limit $1::int) f) p
   cross join lateral (
     select count(*) as alive
       from ${schema}.outbox_worker w
      where w.subscription_ids @> array[s.id]
        and w.until + $4 * interval '1 millisecond' > clock_timestamp()) k
   where s.state <> 'retired'
   order by s.name`

/** What waits in each lane, and suspects, which stand in no lane's order. */
const waitingSql = (schema: QuotedSchema): string => `   cross join lateral (
     select sum(h.n)::bigint as pending, sum(h.stuck)::bigint as stuck, min(h.oldest) as oldest
       from generate_series(0, greatest(s.lanes, 1) - 1) as lane(n)
      cross join lateral (
        select count(*) as n, min(f.created_at) as oldest,
               count(*) filter (where f.created_at < clock_timestamp() - $2 * interval '1 millisecond') as stuck
          from ((select d.created_at from ${schema}.outbox_delivery d
                  where d.subscription_id = s.id and d.lane = lane.n and d.fresh
                  order by d.id + 0 limit $1::int)
                union all
                (select d.created_at from ${schema}.outbox_delivery d
                  where d.subscription_id = s.id and d.lane = lane.n and d.held and not d.suspect
                    and d.next_retry_at is not null
                  order by d.next_retry_at, d.id limit $1::int)) f) h) w
   cross join lateral (
     select count(*) as pending, min(f.created_at) as oldest,
            count(*) filter (where f.created_at < clock_timestamp() - $2 * interval '1 millisecond') as stuck
       from (select d.created_at from ${schema}.outbox_delivery d
              where d.subscription_id = s.id and d.held and d.suspect
              order by d.id limit $1::int) f) u`

/** Means and dead letters are taken from this many times as many rows as are counted at most. */
const SAMPLE = 10

/** How every subscription stands, at a cost that does not grow with the tables. */
export async function readFigures(
  pool: PgPool,
  schema: QuotedSchema,
  { most, stuckAfterMs, leastForMean, workerMissingMs }: FiguresRequest,
): Promise<readonly SubscriptionFigures[]> {
  const values = [most, stuckAfterMs, leastForMean, workerMissingMs, most * SAMPLE]
  const figures = (await readBounded(pool, figuresSql(schema), values)).map(toFigures)
  const look = { most: most * SAMPLE, stuckAfterMs }
  const { unread } = await unreadEvents((sql, asked) => readBounded(pool, sql, asked), schema, look)
  return unread.reduce((all, part) => all.map((each) => withUnread(each, part, most)), figures)
}

/** What is still in the log waits like what has a delivery: else a subscription that nobody reads for would look idle. */
function withUnread(figures: SubscriptionFigures, unread: Unread, most: number): SubscriptionFigures {
  if (figures.name !== unread.subscription) return figures
  return {
    ...figures,
    pending: Math.min(figures.pending + unread.count, most),
    stuck: Math.min(figures.stuck + unread.stuck, most),
    oldestPendingSeconds: Math.max(figures.oldestPendingSeconds ?? 0, unread.oldestSeconds),
  }
}

function toFigures(row: RawRow): SubscriptionFigures {
  // A clock that was set back must not make an age negative.
  const seconds = (text: string | null | undefined): number | null =>
    text === null || text === undefined ? null : Math.max(0, Number(text))
  return {
    name: row[0] as string,
    pausedBy: row[1] ?? null,
    pending: Number(row[2]),
    processing: Number(row[3]),
    stuck: Number(row[4]),
    oldestPendingSeconds: seconds(row[5]),
    dead: Number(row[6]),
    meanRetries: seconds(row[7]),
    workers: Number(row[8]),
    log:
      (row[9] ?? null) === null
        ? null
        : { silentSeconds: seconds(row[9]) ?? 0, gap: row[10] ?? null, gapSeconds: seconds(row[11]) },
  }
}
