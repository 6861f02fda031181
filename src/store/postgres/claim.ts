import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { ClaimRequest } from '../queue-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { leaseOf, RETURNING_CLAIMED, selectClaimed, toClaimedDelivery } from './event-row.ts'
import { type QuotedSchema, sequenceName } from './identifiers.ts'
import type { LowWaterBound } from './low-water.ts'

// Walks outbox_delivery_due for retries and outbox_delivery_fresh, from the low-water bound, for new events.
// Rows are found and locked first and then updated by their ctid: an UPDATE with a join or a sub-select with LIMIT may
// update more rows than it locked, and leaves the planner a join order to get wrong.
const claimSql = (schema: QuotedSchema): string => `
  with open as materialized (
    select s.id, case when s.generation = $6 then $5::bigint else 0 end as low_water
      from ${schema}.outbox_subscription s
     where s.id = $1 and s.paused_at is null and s.state <> 'retired'
  ),
  lease as materialized (select nextval(${sequenceName(schema, 'outbox_lease_token')}) as token),
  due as materialized (
    select array(
      select d.ctid from ${schema}.outbox_delivery d
       where d.subscription_id = (select id from open) and d.lane = 0 and d.status = 'PENDING' and d.held
         and not d.suspect and d.next_retry_at <= (select clock_timestamp())
       order by d.next_retry_at, d.id
       limit greatest($3 / 4, 1)
         for update skip locked) as rows
  ),
  fresh as materialized (
    select array(
      select d.ctid from ${schema}.outbox_delivery d
       where d.subscription_id = (select id from open) and d.lane = 0 and d.status = 'PENDING' and not d.held
         and d.id >= (select low_water from open)
       order by d.id
       limit greatest($3 - cardinality((select rows from due)), 0)
         for update skip locked) as rows
  ),
  claimed as (
    update ${schema}.outbox_delivery d
       set status = 'PROCESSING', held = false, next_retry_at = null, attempt_count = d.attempt_count + 1,
           last_attempt_at = clock_timestamp(), updated_at = clock_timestamp(), locked_by = $2,
           locked_until = clock_timestamp() + $4 * interval '1 millisecond',
           lease_token = (select token from lease)
     where d.ctid = any ((select rows from due) || (select rows from fresh))
    returning ${RETURNING_CLAIMED}, false as was_held
  )
  ${selectClaimed(schema)}`

/** Takes fresh deliveries and due retries of an unordered subscription, in position order, under one lease token. */
export async function claim(
  pool: PgPool,
  schema: QuotedSchema,
  request: ClaimRequest,
  bound: LowWaterBound,
): Promise<readonly ClaimedDelivery[]> {
  const { subscriptionId, workerId, limit, leaseMs } = request
  const rows = await withClient(pool, (client) =>
    rawQuery(client, claimSql(schema), [
      subscriptionId,
      workerId,
      limit,
      leaseMs,
      bound.position,
      bound.generation,
    ]),
  )
  const lease = leaseOf(rows, workerId)
  if (lease === null) return []
  return rows.map((row) => toClaimedDelivery(row, subscriptionId, lease)).toSorted(byPosition)
}

/** RETURNING promises no order. Positions are 64-bit numbers kept as text: the longer is the larger. */
export function byPosition(a: ClaimedDelivery, b: ClaimedDelivery): number {
  if (a.position.length !== b.position.length) return a.position.length - b.position.length
  return a.position < b.position ? -1 : Number(a.position > b.position)
}
