import type { BlockedKey, BlockedKeyQuery } from '../dead-letter-store.ts'
import { type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import { deadLetterId } from './dead-letter-row.ts'
import type { QuotedSchema } from './identifiers.ts'
import { pageSize } from './page-size.ts'
import { dateOf, timeColumn } from './time-column.ts'

/** How far is counted: of parked events of the key, and of new ones in its lane that no claim has looked at yet. */
const FARTHEST = 1_000

// Walks outbox_dead_letter_blocking. A key is blocked by its first DEAD delivery that is held; what waits behind it is
// parked (outbox_delivery_held_key), or new and not looked at by a claim yet (outbox_delivery_fresh).
const blockedSql = (schema: QuotedSchema): string => `
  with heads as materialized (
    select l.*
      from ${schema}.outbox_dead_letter l
     cross join lateral (
       select 1 from ${schema}.outbox_delivery d, ${schema}.outbox_subscription s
        where d.id = l.position and d.subscription_id = l.subscription_id and d.status = 'DEAD' and d.held
          and s.id = l.subscription_id and s.state <> 'retired'
          and not exists (
            select 1 from ${schema}.outbox_delivery earlier
             where earlier.subscription_id = d.subscription_id and earlier.lane = d.lane
               and earlier.ordering_key = d.ordering_key and earlier.held and earlier.status = 'DEAD'
               and earlier.id < d.id)
       offset 0) dead
     where not l.resolved and l.ordering_key is not null
       and ($1::text is null or l.subscription = $1)
       and ($2::bigint is null or l.id > $2)
     order by l.id
     limit $3
  )
  select h.subscription, h.ordering_key, h.id, h.event_id, h.event_type, h.error_code, h.error_message,
         ${timeColumn('h.failed_at')}, extract(epoch from clock_timestamp() - h.failed_at),
         parked.events + fresh.events, parked.events < ${FARTHEST} and fresh.seen < ${FARTHEST}
    from heads h
   cross join lateral (
     select count(*) as events from (
       select 1 from ${schema}.outbox_delivery p
        where p.subscription_id = h.subscription_id and p.lane = h.lane and p.ordering_key = h.ordering_key
          and p.held and p.status = 'PENDING' and p.id > h.position
        limit ${FARTHEST}) counted) parked
   cross join lateral (
     select count(*) as seen, count(*) filter (where looked_at.ordering_key = h.ordering_key) as events from (
       select f.ordering_key from ${schema}.outbox_delivery f
        where f.subscription_id = h.subscription_id and f.lane = h.lane and f.fresh
          and f.id + 0 > h.position
        order by f.id + 0
        limit ${FARTHEST}) looked_at) fresh
   order by h.id`

/** The keys of ordered subscriptions that wait for a decision, longest first. */
export async function blockedKeys(
  pool: PgPool,
  schema: QuotedSchema,
  { subscription, after, limit }: BlockedKeyQuery,
): Promise<readonly BlockedKey[]> {
  const values = [subscription ?? null, after === undefined ? null : deadLetterId(after), pageSize(limit)]
  const rows = await withClient(pool, (client) => rawQuery(client, blockedSql(schema), values))
  return rows.map(toBlockedKey)
}

function toBlockedKey(row: RawRow): BlockedKey {
  const text = (column: number): string => row[column] as string
  return {
    subscription: text(0),
    orderingKey: text(1),
    deadLetterId: text(2),
    eventId: text(3),
    eventType: text(4),
    errorCode: text(5),
    errorMessage: text(6),
    failedAt: dateOf(text(7)),
    blockedSeconds: Math.max(0, Number(text(8))),
    waiting: Number(text(9)),
    waitingIsExact: text(10) === 't',
  }
}
