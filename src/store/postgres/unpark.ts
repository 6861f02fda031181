import type { ParkedKey } from '../queue-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// A key whose first event waits for its retry, or is dead, stays parked: its events would be claimed to be parked again.
// Those let go are due at one instant, that of the ones before them if they are due already, so that they are read in
// position order (see claim-lanes.ts); now(), not clock_timestamp(), for the same reason.
const headsSql = (schema: QuotedSchema): string => `
  select w.lane, w.key, w.most, case when h.due_at = 'infinity' then now() else h.due_at end as due_at
    from wanted w
   cross join lateral (
     select d.status, d.next_retry_at as due_at from ${schema}.outbox_delivery d
      where d.subscription_id = $1 and d.lane = w.lane and d.ordering_key = w.key and d.held
      order by d.id
      limit 1) h
   where h.status = 'PENDING' and (h.due_at = 'infinity' or h.due_at <= clock_timestamp())`

const firstSql = (schema: QuotedSchema): string => `
  select r.id from heads k
   cross join lateral (
     select d.id, d.status, d.next_retry_at as due_at, row_number() over (order by d.id) as n
       from ${schema}.outbox_delivery d
      where d.subscription_id = $1 and d.lane = k.lane and d.ordering_key = k.key and d.held
      order by d.id
      limit (select max(most) from wanted)) r
   where r.n <= k.most and r.status = 'PENDING' and r.due_at = 'infinity'`

// A row that somebody has locked is left to unpark-stranded.ts: other keys must not wait for it.
const unparkSql = (schema: QuotedSchema): string => `
  with wanted as materialized (
    select * from unnest($2::smallint[], $3::text[], $4::int[]) as w(lane, key, most)),
  heads as materialized (${headsSql(schema)}),
  first as materialized (${firstSql(schema)}),
  freed as (
    update ${schema}.outbox_delivery d
       set next_retry_at = k.due_at, updated_at = clock_timestamp()
      from heads k
     where k.lane = d.lane and k.key = d.ordering_key
       and d.subscription_id = $1 and d.id = any (array(
         select f.id from ${schema}.outbox_delivery f
          where f.id = any (array(select id from first)) and f.subscription_id = $1 and f.status = 'PENDING' and f.next_retry_at = 'infinity'
            for update skip locked))
    returning k.key
  )
  select key, count(*) from freed group by key`

/** Lets the first parked deliveries of these ordering keys be claimed again. Tells of each key how many. */
export async function unpark(
  pool: PgPool,
  schema: QuotedSchema,
  subscriptionId: number,
  keys: readonly ParkedKey[],
): Promise<ReadonlyMap<string, number>> {
  const values = [
    subscriptionId,
    keys.map(({ lane }) => lane),
    keys.map(({ key }) => key),
    keys.map(({ most }) => most),
  ]
  const rows = await withClient(pool, (client) => rawQuery(client, unparkSql(schema), values))
  return new Map(rows.map(([key, count]) => [key as string, Number(count)]))
}
