import type { CrashedDelivery, HeldLane, LaneStore, TakenLanes } from '../queue-store.ts'
import {
  isStatementError,
  type PgClient,
  type PgPool,
  rawQuery,
  withClient,
  withTransaction,
} from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { returnLanes } from './return-lapsed.ts'
import type { StrandedScan } from './unpark-stranded.ts'

const fairShareSql = (schema: QuotedSchema): string => `
  select ceil(s.lanes::numeric / greatest(1, (
           select count(*) from ${schema}.outbox_worker w
            where w.worker_id = $2 or (w.until > clock_timestamp() and w.subscription_ids @> array[$1::int]))))::int
    from ${schema}.outbox_subscription s
   where s.id = $1`

/** How far a take moves a lane's epoch: renewals (renew-lanes.ts) go by one, and none comes so far. */
const EPOCHS_PER_TAKE = 65_536

// Free lanes and lapsed ones alike: recovery is the daily path. The epoch fences out whoever held it before. Lanes that
// this worker owns without knowing it ($5, where an answer was lost) need not lapse first.
const takeLanesSql = (schema: QuotedSchema): string => `
  with pick as materialized (
    select array(
      select l.ctid from ${schema}.outbox_lane l
       where l.subscription_id = $1 and l.lane <> all ($7::smallint[])
         and (l.until < clock_timestamp() or ($5 and l.owner = $2 and l.lane <> all ($6::smallint[])))
       order by l.until, l.lane
       limit $3
         for update skip locked) as rows
  )
  update ${schema}.outbox_lane l
     set owner = $2, until = clock_timestamp() + $4 * interval '1 millisecond', epoch = l.epoch + ${EPOCHS_PER_TAKE}
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

type TakeLanesRequest = Parameters<LaneStore['takeLanes']>[0]

/** What was taken, and what of it its last owners had killed themselves with. */
interface Take {
  readonly taken: readonly HeldLane[]
  readonly dead: readonly CrashedDelivery[]
}

/**
 * Takes lanes up to a fair share and returns what their last owner left, in one transaction. Where the database refuses
 * to have something returned, by a trigger of the user's own, each lane has a transaction of its own: one row must not
 * keep the other lanes from being served.
 */
export async function takeLanes(
  pool: PgPool,
  schema: QuotedSchema,
  request: TakeLanesRequest,
  stranded: StrandedScan,
): Promise<TakenLanes> {
  const { subscriptionId, workerId, held } = request
  const [share] = await withClient(pool, (client) =>
    rawQuery(client, fairShareSql(schema), [subscriptionId, workerId]),
  )
  const fairShare = Number(share?.[0] ?? 0)
  const wanted = Math.max(0, fairShare - held.length)
  const all = wanted === 0 ? NOTHING : await takeAtOnce(pool, schema, request, { wanted, looked: [] })
  const result = 'error' in all ? await takeEach(pool, schema, request, wanted) : { ...all, refused: [] }
  await stranded.next()
  return { ...result, fairShare }
}

const NOTHING: Take = { taken: [], dead: [] }

/** One at a time, each once. */
async function takeEach(
  pool: PgPool,
  schema: QuotedSchema,
  request: TakeLanesRequest,
  wanted: number,
): Promise<Omit<TakenLanes, 'fairShare'>> {
  const [taken, dead]: [HeldLane[], CrashedDelivery[]] = [[], []]
  const refused: { readonly lane: number; readonly error: unknown }[] = []
  const looked: number[] = []
  while (taken.length < wanted) {
    const before = looked.length
    const one = await takeAtOnce(pool, schema, request, { wanted: 1, looked })
    const lane = looked[before]
    if (lane === undefined) break
    if ('error' in one) refused.push({ lane, error: one.error })
    else {
      taken.push(...one.taken)
      dead.push(...one.dead)
    }
  }
  return { taken, dead, refused }
}

/** How many to take, and which lanes were looked at already: those that it finds are added. */
interface Look {
  readonly wanted: number
  readonly looked: number[]
}

/** In one transaction. Where the database refuses something that was left in these lanes, the error, and none is taken. */
async function takeAtOnce(
  pool: PgPool,
  schema: QuotedSchema,
  { subscriptionId, workerId, leaseMs, held, unsure = false }: TakeLanesRequest,
  { wanted, looked }: Look,
): Promise<Take | { readonly error: unknown }> {
  const known = held.map(({ lane }) => lane)
  const values = [subscriptionId, workerId, wanted, leaseMs, unsure, known, [...looked]]
  const before = looked.length
  try {
    return await withTransaction(pool, async (client) => {
      const rows = await rawQuery(client, takeLanesSql(schema), values)
      const found = rows.map(([lane, epoch]) => ({ lane: Number(lane), epoch: epoch as string }))
      looked.push(...found.map(({ lane }) => lane))
      return found.length === 0 ? NOTHING : returnAll(client, schema, subscriptionId, found)
    })
  } catch (error) {
    if (looked.length === before || !isStatementError(error)) throw error
    return { error }
  }
}

/** Returns everything that the last owners had in hand, as far as nobody has it locked. */
async function returnAll(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionId: number,
  found: readonly HeldLane[],
): Promise<Take> {
  const lanes = found.map(({ lane }) => lane)
  const dead: CrashedDelivery[] = []
  for (let returned = 1; returned > 0; ) {
    const report = await returnLanes(client, schema, subscriptionId, lanes)
    returned = report.returned.size
    dead.push(...report.dead)
  }
  const unsettled = await rawQuery(client, declineSql(schema), [subscriptionId, lanes])
  const declined = new Set(unsettled.map(([lane]) => Number(lane)))
  return { taken: found.filter(({ lane }) => !declined.has(lane)), dead }
}
