import type { LaneClaimRequest, LaneDelivery } from '../queue-store.ts'
import { keptQuery, type PgPool, withClient } from './client.ts'
import {
  changedDelivery,
  changedWithEvents,
  joinEvents,
  MARKS,
  packedDelivery,
  toDeliveries,
} from './event-row.ts'
import { FRESH_POSITION } from './fresh-position.ts'
import { heldSince } from './held-since.ts'
import type { QuotedSchema } from './identifiers.ts'
import { LEASE_OF_LANES, ownedLanes, RECORD_OF_LANES } from './lane-sql.ts'
import { newLeaseToken, recordLease } from './lease-sql.ts'
import { ERA, heldFrom, type LowWaterBound, withHeldFrom } from './low-water.ts'

/** Returned in place of what was taken where something is held. */
const HELD = 'held'

// Of one lane, in position order.
const freshRows = (schema: QuotedSchema, from: string, limit: string, also = ''): string => `
         select d.id from ${schema}.outbox_delivery d
          where d.subscription_id = $1 and d.lane = m.lane and d.fresh
            and ${FRESH_POSITION} >= ${from}${also}
          order by ${FRESH_POSITION}
          limit ${limit}`

// In a window ($8 positions wide, see claim-window.ts) every lane is read before any is read further. Of each lane what is
// taken is a stretch from its first row, whichever of the two brought it: the second begins where the first has ended, and
// is read only if that left room.
const takenRows = (schema: QuotedSchema): string => `
    select array(
      select r.id from (
        select r.id from mine m
         cross join lateral (${freshRows(
           schema,
           '(select first from heads)',
           '$3',
           `
            and ${FRESH_POSITION} < (select first + $8 from heads)`,
         )}
            for update nowait) r
         where (select first from heads) is not null
        union all
        select r.id from mine m
         cross join lateral (${freshRows(
           schema,
           'coalesce((select first + $8 from heads), (select low_water from open))',
           '$3',
         )}
            for update nowait) r
         where not (select something from held)) r
       limit $3) as ids`

// Where nothing of these lanes is held and the subscription is not being widened, no key waits for anything: its events
// may be taken as they stand. NOWAIT, because a row that somebody has locked may not be passed by later ones of its key,
// and not be waited for either. Nor may one that was changed since this statement began: the lock follows it, and so does
// the update, which goes by key. By ctid it would not find the version that is locked.
const lookedAt = (schema: QuotedSchema): string => `
  with open as materialized (
    select s.id, case when ${ERA} = $7 then $6::bigint else 0 end as low_water, s.served_to,
           ${heldFrom('$7', '$9')} as held_from
      from ${schema}.outbox_subscription s
     where s.id = $1 and s.paused_at is null and (s.state = 'active' or s.served_to is not null)
  ),
  lease as materialized (
    select ${newLeaseToken(schema)} as token, clock_timestamp() as since
  ),
  mine as materialized (${withHeldFrom(ownedLanes(schema, { worker: '$2', lanes: '$4', epochs: '$5' }))}),
  held as materialized (
    select (select served_to from open) is not null or exists (
      select from mine m
       cross join lateral (
         select from ${schema}.outbox_delivery h
          where h.subscription_id + 0 = $1 and h.lane = m.lane and h.held and h.ordering_key is not null
            and ${heldSince('h')} >= m.held_from
          limit 1) h) as something
  ),
  heads as materialized (
    select min(r.id) as first
      from mine m
     cross join lateral (${freshRows(schema, '(select low_water from open)', '1')}) r
     where $8 > 0 and not (select something from held)
  ),
  fresh as materialized (${takenRows(schema)}
  ),${recordLease(schema, { ...RECORD_OF_LANES, positions: '(select ids from fresh)' })}`

const updateSql = (schema: QuotedSchema, returned: string): string => `
    update ${schema}.outbox_delivery d
       set status = 'PROCESSING', fresh = false, attempt_count = d.attempt_count + 1, last_attempt_at = (select since from lease),
           updated_at = (select since from lease), locked_by = $2, locked_until = ${LEASE_OF_LANES},
           lease_token = (select token from lease)
     where d.id = any ((select ids from fresh)::bigint[]) and d.subscription_id = $1
    returning ${returned}`

const NO_MARKS = `'${MARKS.none}'`

// Whether something is held is found out afterwards, when nothing came.
const claimWindowSql = (schema: QuotedSchema): string => `${lookedAt(schema)},
  changed as (${updateSql(schema, changedDelivery(NO_MARKS))}
  )${changedWithEvents(schema)}`

const claimFreshLanesSql = (schema: QuotedSchema): string => `${lookedAt(schema)},
  claimed as (${updateSql(schema, packedDelivery(schema, NO_MARKS))}
  )
  select packed from claimed
  union all
  select '${HELD}' where (select something from held)`

/**
 * Takes deliveries of owned lanes of which none is held: the usual case, and two thirds of the work of `claimLanes`.
 * @returns null where something is held or the subscription is being widened: then nothing was taken. In a window that is
 * not told apart from nothing.
 * @throws the driver's error with SQLSTATE 55P03 where somebody has locked a row. Then nothing was taken either.
 */
export async function claimFreshLanes(
  pool: PgPool,
  schema: QuotedSchema,
  request: LaneClaimRequest,
  bound: LowWaterBound,
  windowWidth: number,
): Promise<readonly LaneDelivery[] | null> {
  const { subscriptionId, workerId, limit, lanes } = request
  const values = [
    subscriptionId,
    workerId,
    limit,
    lanes.map(({ lane }) => lane),
    lanes.map(({ epoch }) => epoch),
    bound.position,
    bound.era,
    windowWidth,
    bound.heldFrom,
  ]
  return withClient(pool, async (client) => {
    if (windowWidth > 0) {
      const found = await keptQuery(client, 'claim_window', claimWindowSql(schema), values)
      return joinEvents(found, subscriptionId, workerId)
    }
    const rows = await keptQuery(client, 'claim_fresh_lanes', claimFreshLanesSql(schema), values)
    return rows[0]?.[0] === HELD ? null : toDeliveries(rows, subscriptionId, workerId)
  })
}
