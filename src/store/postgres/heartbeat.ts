import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { HeartbeatReport, HeartbeatRequest } from '../queue-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const extendLanes = (schema: QuotedSchema): string => `
  owned as materialized (
    select l.tid, w.subscription_id, w.lane
      from moment m
     cross join unnest($6::int[], $7::smallint[], $8::bigint[]) as w(subscription_id, lane, epoch)
     cross join lateral (
       select l.ctid as tid from ${schema}.outbox_lane l
        where l.subscription_id = w.subscription_id and l.lane = w.lane and l.epoch = w.epoch and l.owner = $1
          and l.until > m.now
        offset 0) l
  ),
  free_lanes as materialized (
    select array(
      select l.ctid from ${schema}.outbox_lane l
       where l.ctid = any (array(select tid from owned)) for update skip locked) as rows
  ),
  lanes as (
    update ${schema}.outbox_lane l
       set until = (select until from moment)
     where l.ctid = any ((select rows from free_lanes)::tid[])
    returning l.subscription_id, l.lane
  )`

const extendDeliveries = (schema: QuotedSchema): string => `
  held as materialized (
    select d.tid, w.subscription_id, w.lane, w.id
      from moment m
     cross join unnest($9::int[], $10::smallint[], $11::bigint[], $12::bigint[]) as w(subscription_id, lane, id, token)
     cross join lateral (
       select d.ctid as tid from ${schema}.outbox_delivery d
        where d.subscription_id = w.subscription_id and d.lane = w.lane and d.id = w.id and d.lease_token = w.token
          and d.status = 'PROCESSING' and d.locked_until > m.now
        offset 0) d
  ),
  stuck as materialized (
    select o.subscription_id, o.lane from owned o where o.tid <> all ((select rows from free_lanes)::tid[])
  ),
  free as materialized (
    select array(
      select d.ctid from ${schema}.outbox_delivery d
       where d.ctid = any (array(
         select h.tid from held h where (h.subscription_id, h.lane) not in (select s.subscription_id, s.lane from stuck s)))
         for update skip locked) as rows
  ),
  extended as (
    update ${schema}.outbox_delivery d
       set locked_until = (select until from moment), updated_at = (select now from moment)
     where d.ctid = any ((select rows from free)::tid[])
    returning 1
  )`

// One instant for everything: a delivery of a lane is extended to the same time as its lane, so that it never outlives
// it. A lease that has lapsed is not revived, even if nobody took it: it may have been returned meanwhile.
// Waits for no lock. A delivery that its handler completes in a transaction still open is left alone, and so is a lane
// that a claim holds, with its deliveries: one that takes its time must not cost the worker all its leases.
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
  ),
  ${extendLanes(schema)},
  ${extendDeliveries(schema)}
  select 'lane', subscription_id, lane, null::bigint from lanes
  union all
  select 'lane', subscription_id, lane, null from stuck
  union all
  select 'delivery', subscription_id, lane, id from held
  union all
  select 'worker', count(*)::int, 0, null from alive`

/** Extends every lease in hand to one instant and tells which could not be. */
export async function heartbeat(
  pool: PgPool,
  schema: QuotedSchema,
  request: HeartbeatRequest,
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
  ]
  const rows = await withClient(pool, (client) => rawQuery(client, heartbeatSql(schema), values))
  const extended = new Set(rows.map((row) => row.join('/')))
  return {
    lostLanes: lanes
      .filter(({ subscriptionId, lane }) => !extended.has(`lane/${subscriptionId}/${lane}/`))
      .map(({ subscriptionId, lane }) => ({ subscriptionId, lane })),
    lostDeliveries: deliveries.filter((delivery) => !extended.has(`delivery/${keyOf(delivery)}`)),
  }
}

function keyOf({ subscriptionId, lane, position }: ClaimedDelivery): string {
  return `${subscriptionId}/${lane}/${position}`
}
