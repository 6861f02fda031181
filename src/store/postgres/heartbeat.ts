import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { HeartbeatReport, HeartbeatRequest } from '../queue-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

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
  ),
  lanes as (
    update ${schema}.outbox_lane l
       set until = m.until
      from moment m, unnest($6::int[], $7::smallint[], $8::bigint[]) as w(subscription_id, lane, epoch)
     where l.subscription_id = w.subscription_id and l.lane = w.lane and l.epoch = w.epoch and l.owner = $1
       and l.until > m.now
    returning l.subscription_id, l.lane
  ),
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
  free as materialized (
    select array(
      select d.ctid from ${schema}.outbox_delivery d
       where d.ctid = any (array(select tid from held)) for update skip locked) as rows
  ),
  extended as (
    update ${schema}.outbox_delivery d
       set locked_until = (select until from moment), updated_at = (select now from moment)
     where d.ctid = any ((select rows from free)::tid[])
    returning 1
  )
  select 'lane', subscription_id, lane, null from lanes
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
