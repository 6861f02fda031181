import type { SubscriptionFacts } from '../doctor-facts.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

// In words that the partial indexes answer, and never the whole table.
const factsSql = (schema: QuotedSchema): string => `
  select s.name, s.paused_by, ${timeColumn('s.paused_at')}, s.state = 'joining',
         exists (select 1 from ${schema}.outbox_worker w
                  where w.until > clock_timestamp() and w.subscription_ids @> array[s.id]),
         exists (select 1 from ${schema}.outbox_delivery d
                  where d.subscription_id = s.id and d.fresh)
           or exists (select 1 from ${schema}.outbox_delivery d
                       where d.subscription_id = s.id and d.held and not d.suspect and d.next_retry_at is not null)
           or exists (select 1 from ${schema}.outbox_delivery d
                       where d.subscription_id = s.id and d.held and d.suspect)
           or exists (select 1 from ${schema}.outbox_stream t
                       join ${schema}.outbox_event e on e.xid >= pg_snapshot_xmax(t.snapshot)
                      where t.subscription_id = s.id),
         l.count, extract(epoch from clock_timestamp() - l.oldest)::float8
    from ${schema}.outbox_subscription s
    left join lateral (
      select count(*) as count, min(h.locked_until) as oldest from ${schema}.outbox_in_hand h
       where h.subscription_id = s.id
         and h.locked_until < clock_timestamp() - $1 * interval '1 second') l on true
   where s.state <> 'retired'
   order by s.name`

/** How the subscriptions that are not retired stand. */
export async function subscriptionFacts(
  client: PgClient,
  schema: QuotedSchema,
  leaseSeconds: number,
): Promise<readonly SubscriptionFacts[]> {
  const rows = await rawQuery(client, factsSql(schema), [leaseSeconds])
  return rows.map(
    ([name, pausedBy = null, pausedAt = null, joining, live, pending, lapsed, seconds = null]) => ({
      subscription: name as string,
      pausedBy,
      pausedAt: pausedAt === null ? null : dateOf(pausedAt),
      joining: joining === 't',
      hasLiveWorker: live === 't',
      hasPending: pending === 't',
      lapsedLeases: Number(lapsed),
      lapsedSeconds: seconds === null ? null : Number(seconds),
    }),
  )
}
