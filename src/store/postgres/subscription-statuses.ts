import type { SubscriptionStatus } from '../inspect-store.ts'
import { type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { openTransaction } from './open-transaction.ts'
import { toUnread, type Unread, unreadSql } from './unread-events.ts'

// Reads every delivery once. Ages are judged by the clock that wrote the times.
const subscriptionStatusesSql = (schema: QuotedSchema): string => `
  select s.name, s.state, s.paused_at is not null, s.order_by,
         coalesce(d.pending, 0), coalesce(d.processing, 0), coalesce(d.done, 0), coalesce(d.dead, 0),
         coalesce(d.retrying, 0), extract(epoch from clock_timestamp() - d.oldest_pending)::float8,
         coalesce(l.unresolved, 0)
    from ${schema}.outbox_subscription s
    left join (
      select d.subscription_id,
             count(*) filter (where d.status = 'PENDING') as pending,
             count(*) filter (where d.status = 'PROCESSING') as processing,
             count(*) filter (where d.status = 'DONE') as done,
             count(*) filter (where d.status = 'DEAD') as dead,
             count(*) filter (where d.status = 'PENDING' and d.held) as retrying,
             min(d.created_at) filter (where d.status = 'PENDING') as oldest_pending
        from ${schema}.outbox_delivery d
       group by d.subscription_id) d on d.subscription_id = s.id
    left join (
      select l.subscription_id, count(*) as unresolved
        from ${schema}.outbox_dead_letter l
       where not l.resolved
       group by l.subscription_id) l on l.subscription_id = s.id
   order by s.name, s.id`

/** LIMIT NULL is none. */
const NO_LIMIT = null

/** How every subscription stands, by name. Exact counts: for a person who asks, not for a scrape each second. */
export async function subscriptionStatuses(
  pool: PgPool,
  schema: QuotedSchema,
): Promise<readonly SubscriptionStatus[]> {
  const [rows, inLog] = await withClient(pool, async (client) => [
    await rawQuery(client, subscriptionStatusesSql(schema), []),
    await rawQuery(client, unreadSql(schema), [NO_LIMIT, 0]),
  ])
  const waitsFor = rows.some(([, state]) => state === 'joining') ? await openTransaction(pool, schema) : null
  const statuses = rows.map((row) => toStatus(row, row[1] === 'joining' ? waitsFor : null))
  return inLog.map(toUnread).reduce((all, part) => all.map((each) => withUnread(each, part)), statuses)
}

/** What is still in the log waits like what has a delivery. The name of a retired one may have been given again. */
function withUnread(
  status: SubscriptionStatus,
  { subscription, count, oldestSeconds }: Unread,
): SubscriptionStatus {
  if (status.name !== subscription || status.state === 'retired') return status
  const { counts, oldestPendingSeconds: oldest } = status
  return {
    ...status,
    counts: { ...counts, PENDING: counts.PENDING + count },
    oldestPendingSeconds: Math.max(oldest ?? 0, oldestSeconds),
  }
}

function toStatus(row: RawRow, waitsFor: SubscriptionStatus['waitsFor']): SubscriptionStatus {
  const count = (column: number): number => Number(row[column])
  const oldest = row[9] ?? null
  return {
    name: row[0] as string,
    state: row[1] as SubscriptionStatus['state'],
    paused: row[2] === 't',
    orderBy: row[3] as string,
    counts: { PENDING: count(4), PROCESSING: count(5), DONE: count(6), DEAD: count(7) },
    retrying: count(8),
    // A clock that was set back must not make it negative.
    oldestPendingSeconds: oldest === null ? null : Math.max(0, Number(oldest)),
    unresolvedDeadLetters: count(10),
    waitsFor,
  }
}
