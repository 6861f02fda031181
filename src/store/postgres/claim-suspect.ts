import type { ClaimRequest, HeldLane, LaneDelivery } from '../queue-store.ts'
import { toLaneDelivery } from './claim-lanes.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { leaseOf, RETURNING_CLAIMED, selectClaimed } from './event-row.ts'
import { type QuotedSchema, sequenceName } from './identifiers.ts'
import { ownedLanes } from './lane-sql.ts'

// One suspect: the first that is due and, on an ordered subscription, in an owned lane with nothing of its key before
// it, neither held nor in hand.
const claimSuspectSql = (schema: QuotedSchema): string => `
  with open as materialized (
    select s.id, s.lanes from ${schema}.outbox_subscription s
     where s.id = $1 and s.paused_at is null and (s.state = 'active' or s.state = 'joining' and s.lanes = 0)
  ),
  mine as materialized (
    select 0::smallint as lane, clock_timestamp() + $3 * interval '1 millisecond' as until
      from open o where o.lanes = 0
    union all
    select * from (${ownedLanes(schema, { worker: '$2', lanes: '$4', epochs: '$5' })}) owned
  ),
  pick as materialized (
    select r.tid, r.until from mine m
     cross join lateral (
       select d.ctid as tid, m.until from ${schema}.outbox_delivery d
        where d.subscription_id = $1 and d.lane = m.lane and d.status = 'PENDING' and d.held and d.suspect
          and d.next_retry_at <= (select clock_timestamp())
          and (d.ordering_key is null or
               ((select h.id from ${schema}.outbox_delivery h
                 where h.subscription_id = $1 and h.lane = d.lane and h.ordering_key = d.ordering_key and h.held
                   and h.id < d.id
                 limit 1) is null
               and (select p.id from ${schema}.outbox_delivery p
                     where p.subscription_id = $1 and p.status = 'PROCESSING' and p.lane = d.lane
                       and p.ordering_key = d.ordering_key
                     limit 1) is null))
        order by d.next_retry_at, d.id
        limit 1
          for update skip locked) r
     limit 1
  ),
  claimed as (
    update ${schema}.outbox_delivery d
       set status = 'PROCESSING', held = false, next_retry_at = null, attempt_count = d.attempt_count + 1,
           last_attempt_at = clock_timestamp(), updated_at = clock_timestamp(), locked_by = $2,
           locked_until = (select until from pick),
           lease_token = nextval(${sequenceName(schema, 'outbox_lease_token')})
     where d.ctid = any (array(select tid from pick))
    returning ${RETURNING_CLAIMED}, true as was_held
  )
  ${selectClaimed(schema)}`

/** Takes one suspect that is due, or null. */
export async function claimSuspect(
  pool: PgPool,
  schema: QuotedSchema,
  request: ClaimRequest & { readonly lanes?: readonly HeldLane[] },
): Promise<LaneDelivery | null> {
  const { subscriptionId, workerId, leaseMs, lanes = [] } = request
  const values = [
    subscriptionId,
    workerId,
    leaseMs,
    lanes.map(({ lane }) => lane),
    lanes.map(({ epoch }) => epoch),
  ]
  const rows = await withClient(pool, (client) => rawQuery(client, claimSuspectSql(schema), values))
  const lease = leaseOf(rows, workerId)
  return rows[0] === undefined || lease === null ? null : toLaneDelivery(rows[0], subscriptionId, lease)
}
