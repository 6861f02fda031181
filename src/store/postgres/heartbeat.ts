import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { HeartbeatReport, HeartbeatRequest } from '../queue-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { GOT, IS_GOT, tryLock } from './lane-sql.ts'
import type { LeaseBook } from './lease-book.ts'

// Lanes are locked by number, as claims do, and before all else: from then on nobody can take them.
const extendedLanes = (schema: QuotedSchema): string => `
  owned as materialized (
    select l.subscription_id, l.lane
      from (select * from unnest($6::int[], $7::smallint[], $8::bigint[]) as w(subscription_id, lane, epoch)
             order by w.subscription_id, w.lane) w
     cross join lateral (
       select l.subscription_id, l.lane from ${schema}.outbox_lane l
        where l.subscription_id = w.subscription_id and l.lane = w.lane and l.epoch = w.epoch and l.owner = $1
          and l.until > (select now from moment)
          for update) l
  ),
  lanes as (
    update ${schema}.outbox_lane l
       set until = (select until from moment)
      from owned o
     where l.subscription_id = o.subscription_id and l.lane = o.lane
    returning l.subscription_id, l.lane
  ),`

// A claim is extended as a whole: one of which something is lost or locked keeps its time, so that when that has passed
// somebody looks at each of its deliveries. So does one whose own row somebody has locked: nobody waits for it.
const extendedClaims = (schema: QuotedSchema): string => `
  whole as materialized (
    select t.subscription_id, t.token from tried t
     group by t.subscription_id, t.token, t.unsettled
    having count(*) filter (where t.got) = t.unsettled
  ),
  kept as (
    update ${schema}.outbox_lease k
       set until = (select until from moment)
     where k.ctid = any (array(
       select l.ctid from whole w
        cross join lateral (
          select l.ctid from ${schema}.outbox_lease l
           where l.subscription_id = w.subscription_id and l.token = w.token
             for update skip locked) l))
  )`

// One instant for everything: a delivery of a lane is extended to the same time as its lane, so that it never outlives
// it. A lease that has lapsed is not revived, even if nobody took it: it may have been returned meanwhile.
// A delivery that its handler completes in a transaction still open is locked by it: it is left alone, because one
// handler that takes its time must not cost the worker all its leases.
const heartbeatSql = (schema: QuotedSchema): string => `
  with moment as materialized (
    select clock_timestamp() as now, clock_timestamp() + $5 * interval '1 millisecond' as until
  ),
  alive as (
    insert into ${schema}.outbox_worker as w (worker_id, subscription_ids, host, pid, until)
    select $1, $2::int[], $3, $4::int, m.until from moment m
    on conflict (worker_id) do update
       set subscription_ids = excluded.subscription_ids, seen_at = clock_timestamp(), until = excluded.until
    returning 1
  ),${extendedLanes(schema)}
  held as materialized (
    select d.version, w.subscription_id, w.id, w.token, w.unsettled
      from moment m
     cross join unnest($9::int[], $10::smallint[], $11::bigint[], $12::bigint[], $13::int[])
                  as w(subscription_id, lane, id, token, unsettled)
     cross join lateral (
       select d.xmin as version from ${schema}.outbox_delivery d
        where d.subscription_id = w.subscription_id and d.lane = w.lane and d.id = w.id and d.lease_token = w.token
          and d.locked_until > m.now
        offset 0) d
  ),
  tried as materialized (${tryLock(schema, 'held', 'r.subscription_id')}),
  extended as (
    update ${schema}.outbox_delivery d
       set locked_until = (select until from moment), updated_at = (select now from moment)
      from ${GOT}
     where ${IS_GOT}
    returning 1
  ),${extendedClaims(schema)}
  select 'lane', subscription_id::text, lane::text from lanes
  union all
  select case when got then 'delivery' else 'busy' end, id::text, token::text from tried
  union all
  select 'worker', count(*)::text, null from alive`

/** Extends every lease in hand to one instant and tells which could not be. */
export async function heartbeat(
  pool: PgPool,
  schema: QuotedSchema,
  request: HeartbeatRequest,
  leases: LeaseBook,
): Promise<HeartbeatReport> {
  const { workerId, subscriptionIds, host, pid, leaseMs, lanes, deliveries } = request
  const values = [
    workerId,
    subscriptionIds,
    host,
    pid,
    leaseMs,
    lanes.map((lane) => lane.subscriptionId),
    lanes.map((lane) => lane.lane),
    lanes.map((lane) => lane.epoch),
    deliveries.map((delivery) => delivery.subscriptionId),
    deliveries.map((delivery) => delivery.lane),
    deliveries.map((delivery) => delivery.position),
    deliveries.map((delivery) => delivery.lease.token),
    deliveries.map((delivery) => leases.unsettled(delivery.lease)),
  ]
  const rows = await withClient(pool, (client) => rawQuery(client, heartbeatSql(schema), values))
  const found = new Set(rows.map((row) => row.join('/')))
  const isBusy = (delivery: ClaimedDelivery): boolean => found.has(`busy/${leaseOf(delivery)}`)
  return {
    lostLanes: lanes
      .filter(({ subscriptionId, lane }) => !found.has(`lane/${subscriptionId}/${lane}`))
      .map(({ subscriptionId, lane }) => ({ subscriptionId, lane })),
    lostDeliveries: deliveries.filter(
      (delivery) => !found.has(`delivery/${leaseOf(delivery)}`) && !isBusy(delivery),
    ),
    busyDeliveries: deliveries.filter(isBusy),
  }
}

/** A token is of one claim, and so of one subscription. */
function leaseOf({ position, lease }: ClaimedDelivery): string {
  return `${position}/${lease.token}`
}
