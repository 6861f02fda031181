import type { HeldLane } from '../queue-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// Locked by number first, as heartbeats and claims do, so that two of them never wait for each other.
const releaseLanesSql = (schema: QuotedSchema): string => `
  with owned as materialized (
    select l.lane
      from (select * from unnest($3::smallint[], $4::bigint[]) as w(lane, epoch) order by w.lane) w
     cross join lateral (
       select l.lane from ${schema}.outbox_lane l
        where l.subscription_id = $1 and l.owner = $2 and l.lane = w.lane and l.epoch = w.epoch
          for update) l
  )
  update ${schema}.outbox_lane l
     set owner = null, until = '-infinity'
    from owned o
   where l.subscription_id = $1 and l.lane = o.lane`

/** Gives lanes back at once, so that nobody has to wait for their lease. */
export async function releaseLanes(
  pool: PgPool,
  schema: QuotedSchema,
  subscriptionId: number,
  workerId: string,
  lanes: readonly HeldLane[],
): Promise<void> {
  const values = [subscriptionId, workerId, lanes.map(({ lane }) => lane), lanes.map(({ epoch }) => epoch)]
  await withClient(pool, (client) => rawQuery(client, releaseLanesSql(schema), values))
}
