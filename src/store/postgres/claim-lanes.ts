import type { Lease } from '../../delivery/delivery.ts'
import type { LaneClaimRequest, LaneDelivery } from '../queue-store.ts'
import { byPosition } from './claim.ts'
import { type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import { leaseOf, RETURNING_CLAIMED, selectClaimed, toClaimedDelivery, wasHeld } from './event-row.ts'
import { type QuotedSchema, sequenceName } from './identifiers.ts'
import { ownedLanes } from './lane-sql.ts'
import type { LowWaterBound } from './low-water.ts'

// Held rows (retries) run as long as nothing earlier of their key still waits, unless that is due at the same instant:
// the limit cuts by due time, and must not leave out one of a key and take a later one. The scalar sub-select stays
// what it is; an EXISTS might become a join whose order the planner gets wrong. The time is a sub-select because a
// volatile function is no bound for an index.
const dueRows = (schema: QuotedSchema): string => `
    select r.tid, r.id from mine m
     cross join lateral (
       select d.ctid as tid, d.id from ${schema}.outbox_delivery d
        where d.subscription_id = $1 and d.lane = m.lane and d.status = 'PENDING' and d.held and not d.suspect
          and d.next_retry_at <= (select clock_timestamp())
          and (select h.id from ${schema}.outbox_delivery h
                where h.subscription_id = $1 and h.lane = d.lane and h.ordering_key = d.ordering_key and h.held
                  and h.id < d.id
                  and (h.status = 'DEAD' or h.suspect or h.next_retry_at <> d.next_retry_at)
                limit 1) is null
        order by d.next_retry_at, d.id
        limit greatest($3 / 4, 1)) r
     limit greatest($3 / 4, 1)`

const freshRows = (schema: QuotedSchema): string => `
    select r.tid, r.blocked from mine m
     cross join lateral (
       select d.ctid as tid,
              (select h.id from ${schema}.outbox_delivery h
                where h.subscription_id = $1 and h.lane = d.lane and h.ordering_key = d.ordering_key and h.held
                  and h.id < d.id
                limit 1) is not null as blocked
         from ${schema}.outbox_delivery d
        where d.subscription_id = $1 and d.lane = m.lane and d.status = 'PENDING' and not d.held
          and d.id >= (select low_water from open)
        order by d.id
        limit greatest($3 - (select count(*) from due), 0)) r
     limit greatest($3 - (select count(*) from due), 0)`

// A row's lease never outlives its lane's: it takes the lane's time. A fresh row of a key that has held rows is parked
// behind them: it leaves the index of fresh rows, so that a blocked key is met once and not at every claim.
const claimLanesSql = (schema: QuotedSchema): string => `
  with open as materialized (
    select s.id, case when s.generation = $7 then $6::bigint else 0 end as low_water
      from ${schema}.outbox_subscription s
     where s.id = $1 and s.paused_at is null and s.state = 'active'
  ),
  lease as materialized (select nextval(${sequenceName(schema, 'outbox_lease_token')}) as token),
  mine as materialized (${ownedLanes(schema, { worker: '$2', lanes: '$4', epochs: '$5' })}),
  due as materialized (${dueRows(schema)}),
  fresh as materialized (${freshRows(schema)}),
  parked as (
    update ${schema}.outbox_delivery d
       set held = true, next_retry_at = 'infinity', updated_at = clock_timestamp()
     where d.ctid = any (array(select tid from fresh where blocked))
    returning 1
  ),
  updated as (
    update ${schema}.outbox_delivery d
       set status = 'PROCESSING', held = false, next_retry_at = null, attempt_count = d.attempt_count + 1,
           last_attempt_at = clock_timestamp(), updated_at = clock_timestamp(), locked_by = $2,
           locked_until = (select m.until from mine m where m.lane = d.lane),
           lease_token = (select token from lease)
     where d.ctid = any (array(select tid from due) || array(select tid from fresh where not blocked))
    returning ${RETURNING_CLAIMED}
  ),
  claimed as (
    select u.*, u.id in (select id from due) as was_held from updated u
  )
  ${selectClaimed(schema)}`

/** Takes deliveries of owned lanes: runs of held ones that may go on, and fresh ones whose key waits for nothing. */
export async function claimLanes(
  pool: PgPool,
  schema: QuotedSchema,
  request: LaneClaimRequest,
  bound: LowWaterBound,
): Promise<readonly LaneDelivery[]> {
  const { subscriptionId, workerId, limit, lanes } = request
  const values = [
    subscriptionId,
    workerId,
    limit,
    lanes.map(({ lane }) => lane),
    lanes.map(({ epoch }) => epoch),
    bound.position,
    bound.generation,
  ]
  const rows = await withClient(pool, (client) => rawQuery(client, claimLanesSql(schema), values))
  const lease = leaseOf(rows, workerId)
  if (lease === null) return []
  return rows.map((row) => toLaneDelivery(row, subscriptionId, lease)).toSorted(byPosition)
}

/** Maps a row to a delivery with what its runner has to know about the key. */
export function toLaneDelivery(row: RawRow, subscriptionId: number, lease: Lease): LaneDelivery {
  const delivery = toClaimedDelivery(row, subscriptionId, lease)
  return { ...delivery, key: row[19] ?? '', wasHeld: wasHeld(row) }
}
