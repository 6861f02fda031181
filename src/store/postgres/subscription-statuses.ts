import type { SubscriptionStatus } from '../inspect-store.ts'
import { type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { openTransaction } from './open-transaction.ts'
import { readBounded } from './read-bounded.ts'
import { type Unread, unreadEvents } from './unread-events.ts'

// Reads every delivery once. One that is parked behind another of its key has no time of its own: nobody has tried it. Ages are judged by the clock that wrote the times.
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
             count(*) filter (where d.status = 'PENDING' and d.held
                                and (d.attempt_count > 0 or d.next_retry_at is distinct from 'infinity')) as retrying,
             min(d.created_at) filter (where d.status = 'PENDING') as oldest_pending
        from ${schema}.outbox_delivery d
       group by d.subscription_id) d on d.subscription_id = s.id
    left join (
      select l.subscription_id, count(*) as unresolved
        from ${schema}.outbox_dead_letter l
       where not l.resolved
       group by l.subscription_id) l on l.subscription_id = s.id
   order by s.name, s.id`

/** Of what waits in a log: a reader that stood still for days leaves millions, and nobody counts on the last of them. */
const MOST_IN_LOG = 100_000

/**
 * How every subscription stands, by name. For a person who asks, not for a scrape each second: deliveries are counted
 * exactly, and what waits in a log up to a limit.
 */
export async function subscriptionStatuses(
  pool: PgPool,
  schema: QuotedSchema,
  mostInLog: number = MOST_IN_LOG,
): Promise<readonly SubscriptionStatus[]> {
  const rows = await withClient(pool, (client) => rawQuery(client, subscriptionStatusesSql(schema), []))
  const look = { most: mostInLog, stuckAfterMs: 0 }
  const inLog = await unreadEvents((sql, values) => readBounded(pool, sql, values), schema, look)
  const waitsFor = rows.some(([, state]) => state === 'joining') ? await openTransaction(pool, schema) : null
  const statuses = rows
    .map((row) => toStatus(row, row[1] === 'joining' ? waitsFor : null))
    .map((each) => (isLive(each) && inLog.capped.has(each.name) ? { ...each, pendingCapped: true } : each))
  return inLog.unread.reduce((all, part) => all.map((each) => withUnread(each, part)), statuses)
}

/** The name of a retired one may have been given again. */
function isLive({ state }: SubscriptionStatus): boolean {
  return state !== 'retired'
}

/** What is still in the log waits like what has a delivery. */
function withUnread(
  status: SubscriptionStatus,
  { subscription, count, oldestSeconds }: Unread,
): SubscriptionStatus {
  if (status.name !== subscription || !isLive(status)) return status
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
    pendingCapped: false,
    retrying: count(8),
    // A clock that was set back must not make it negative.
    oldestPendingSeconds: oldest === null ? null : Math.max(0, Number(oldest)),
    unresolvedDeadLetters: count(10),
    waitsFor,
  }
}
