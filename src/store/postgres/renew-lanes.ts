import type { RenewedLane, RenewLanesRequest } from '../queue-store.ts'
import { isStatementError, type PgPool, rawQuery, withTransaction } from './client.ts'
import { HELD_NOW } from './held-since.ts'
import type { QuotedSchema } from './identifiers.ts'
import { tryLock } from './lane-sql.ts'

// By number, as everybody does who locks several. A claim that is still at work has its lanes locked and is waited for;
// one that has yet to begin, or an earlier renewal, finds another epoch. The lane is extended by more than a heartbeat
// would: one that is under way with the old epoch extends deliveries and not their lane, which they must not outlive.
const renewSql = (schema: QuotedSchema): string => `
  with owned as materialized (
    select l.lane, w.tried
      from (select * from unnest($3::smallint[], $4::bigint[], $5::bigint[]) as w(lane, epoch, tried)
             order by w.lane) w
     cross join lateral (
       select l.lane from ${schema}.outbox_lane l
        where l.subscription_id = $1 and l.owner = $2 and l.lane = w.lane and l.epoch between w.epoch and w.tried
          and l.until > clock_timestamp()
          for update) l
  )
  update ${schema}.outbox_lane l
     set epoch = o.tried + 1, until = clock_timestamp() + $6 * interval '1 millisecond'
    from owned o
   where l.subscription_id = $1 and l.lane = o.lane
  returning l.lane, l.epoch`

const unknownRows = (schema: QuotedSchema): string => `
  ${schema}.outbox_in_hand h
   where h.subscription_id = $1 and h.lanes && $2::smallint[] and h.lane = any ($2::smallint[])
     and h.token <> all ($3::bigint[])`

// Nobody ran them, so the attempt goes back, and as what they came: as suspects or not. now(), so that events of a key
// that come back together are due at one instant, see claim-lanes.ts.
const returnUnknownSql = (schema: QuotedSchema): string => `
  with tried as materialized (${tryLock(schema, `(select h.id, h.version from ${unknownRows(schema)})`, '$1')})
  update ${schema}.outbox_delivery d
     set status = 'PENDING', held = true, held_since = ${HELD_NOW}, suspect = $4, next_retry_at = now(), attempt_count = d.attempt_count - 1,
         locked_by = null, locked_until = null, lease_token = null, updated_at = clock_timestamp()
   where d.id = any (array(select id from tried where got)) and d.subscription_id = $1`

// What somebody has locked cannot be returned, and nothing later of its key may run before it is.
const leftSql = (schema: QuotedSchema): string => `
  select h.lane from ${unknownRows(schema)}`

/** Takes owned lanes anew and returns what is in hand there without this worker knowing, in one transaction. */
export async function renewLanes(
  pool: PgPool,
  schema: QuotedSchema,
  request: RenewLanesRequest,
): Promise<readonly RenewedLane[]> {
  const { subscriptionId, workerId, leaseMs, lanes, tokens, suspects } = request
  const values = [
    subscriptionId,
    workerId,
    lanes.map(({ lane }) => lane),
    lanes.map(({ epoch }) => epoch),
    lanes.map(({ tried }) => tried),
    leaseMs,
  ]
  const renew = withTransaction(pool, async (client) => {
    const rows = await rawQuery(client, renewSql(schema), values)
    const lanesOwned = rows.map(([lane]) => Number(lane))
    await rawQuery(client, returnUnknownSql(schema), [subscriptionId, lanesOwned, tokens, suspects])
    const left = await rawQuery(client, leftSql(schema), [subscriptionId, lanesOwned, tokens])
    const blocked = new Set(left.map(([lane]) => lane))
    return rows.map(([lane, epoch]) => ({
      lane: Number(lane),
      epoch: epoch as string,
      isBlocked: blocked.has(lane as string),
    }))
  })
  return renew.catch((error: unknown) => {
    // A row that the database refuses to have returned, by a trigger of the user's own: nothing was renewed.
    if (isStatementError(error)) return []
    throw error
  })
}
