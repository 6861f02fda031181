import type { CrashedDelivery, HeldLane, LaneStore, TakenLanes } from '../queue-store.ts'
import { type PgPool, rawQuery, withTransaction } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { returnLanes } from './return-lapsed.ts'
import type { StrandedScan } from './unpark-stranded.ts'

const fairShareSql = (schema: QuotedSchema): string => `
  select ceil(s.lanes::numeric / greatest(1, (
           select count(*) from ${schema}.outbox_worker w
            where w.worker_id = $2 or (w.until > clock_timestamp() and w.subscription_ids @> array[$1::int]))))::int
    from ${schema}.outbox_subscription s
   where s.id = $1`

// Free lanes and lapsed ones alike: recovery is the daily path. The epoch fences out whoever held it before. Lanes that
// this worker owns without knowing it ($5, where an answer was lost) need not lapse first.
const takeLanesSql = (schema: QuotedSchema): string => `
  with pick as materialized (
    select array(
      select l.ctid from ${schema}.outbox_lane l
       where l.subscription_id = $1
         and (l.until < clock_timestamp() or ($5 and l.owner = $2 and l.lane <> all ($6::smallint[])))
       order by l.until, l.lane
       limit $3
         for update skip locked) as rows
  )
  update ${schema}.outbox_lane l
     set owner = $2, until = clock_timestamp() + $4 * interval '1 millisecond', epoch = l.epoch + 1
   where l.ctid = any ((select rows from pick)::tid[])
  returning l.lane, l.epoch`

// A delivery that the last owner's handler is completing in a transaction still open cannot be returned yet. Nothing
// later of its key may run before it is known how that ends, so its lane is left for the next look,
// behind those that have waited longer.
const declineSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_lane l
     set owner = null, until = clock_timestamp()
   where l.subscription_id = $1 and l.lane = any (array(
     select h.lane from ${schema}.outbox_in_hand h
      where h.subscription_id = $1 and h.lanes && $2::smallint[] and h.lane = any ($2::smallint[])))
  returning l.lane`

/** Takes lanes up to a fair share and returns what their last owner left, in one transaction. */
export async function takeLanes(
  pool: PgPool,
  schema: QuotedSchema,
  request: Parameters<LaneStore['takeLanes']>[0],
  stranded: StrandedScan,
): Promise<TakenLanes> {
  const { subscriptionId, workerId, leaseMs, held, unsure = false } = request
  const result = await withTransaction(pool, async (client) => {
    const [share] = await rawQuery(client, fairShareSql(schema), [subscriptionId, workerId])
    const fairShare = Number(share?.[0] ?? 0)
    const wanted = fairShare - held.length
    if (wanted <= 0) return { taken: [], fairShare, dead: [] }
    const known = held.map(({ lane }) => lane)
    const values = [subscriptionId, workerId, wanted, leaseMs, unsure, known]
    const rows = await rawQuery(client, takeLanesSql(schema), values)
    const taken = rows.map(([lane, epoch]) => ({ lane: Number(lane), epoch: epoch as string }))
    if (taken.length === 0) return { taken, fairShare, dead: [] }
    const dead = await returnAll(client, schema, subscriptionId, taken)
    const unsettled = await rawQuery(client, declineSql(schema), [
      subscriptionId,
      taken.map(({ lane }) => lane),
    ])
    const declined = new Set(unsettled.map(([lane]) => Number(lane)))
    return { taken: taken.filter(({ lane }) => !declined.has(lane)), fairShare, dead }
  })
  await stranded.next()
  return result
}

async function returnAll(
  client: Parameters<typeof returnLanes>[0],
  schema: QuotedSchema,
  subscriptionId: number,
  taken: readonly HeldLane[],
): Promise<readonly CrashedDelivery[]> {
  const lanes = taken.map(({ lane }) => lane)
  const dead: CrashedDelivery[] = []
  for (let returned = 1; returned > 0; ) {
    const report = await returnLanes(client, schema, subscriptionId, lanes)
    returned = report.returned.size
    dead.push(...report.dead)
  }
  return dead
}
