import { isAboutARow } from '../../runtime/sql-state.ts'
import type { LaneClaimRequest, LaneDelivery } from '../queue-store.ts'
import { type Candidate, readCandidates } from './claim-candidate.ts'
import { keptQuery, type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import { MARKS, packedDelivery, toDeliveries } from './event-row.ts'
import { FRESH_POSITION } from './fresh-position.ts'
import { HELD_NOW, heldSince } from './held-since.ts'
import type { QuotedSchema } from './identifiers.ts'
import { LEASE_OF_LANES, ownedLanes, RECORD_OF_LANES, tryLock } from './lane-sql.ts'
import { newLeaseToken, recordLease } from './lease-sql.ts'
import { dueFrom, ERA, heldFrom, type LowWaterBound, withHeldFrom } from './low-water.ts'

// Held rows (retries) run as long as nothing earlier of their key still waits, unless that is due at the same instant:
// the limit cuts by due time, and must not leave out one of a key and take a later one. Each row looks at the one just
// before it on its key; what stops one stops those behind it too. The scalar sub-select stays what it is; a join might
// be put into an order that reads everything. The time is a sub-select because a volatile function is no bound for an
// index.
// A row of a key that an earlier look found locked ($10) is neither blocked nor free to be taken, but null.
const dueRows = (schema: QuotedSchema, around: string): string => `
    select s.version, s.id, s.key,
           case when s.key = any ($10::text[]) then null else
           coalesce(bool_or(s.waits) over (partition by s.key, s.due_at order by s.id), false) end as blocked
      from (
        select row_number() over () as n, r.* from mine m
         cross join lateral (
           select d.xmin as version, d.id, d.ordering_key as key, d.next_retry_at as due_at,
                  (select h.status = 'DEAD' or h.suspect or h.next_retry_at <> d.next_retry_at
                     from ${schema}.outbox_delivery h
                    where h.subscription_id = $1 and h.lane = d.lane and h.ordering_key = d.ordering_key and h.held
                      and h.id < d.id and ${heldSince('h')} >= m.held_from
                    order by h.id desc
                    limit 1) as waits
             from ${schema}.outbox_delivery d
            where d.subscription_id = $1 and d.lane = m.lane and d.held and not d.suspect
              and d.next_retry_at >= (select due_from from open)
              and d.next_retry_at <= (select clock_timestamp())${around}
            order by d.next_retry_at, d.id
            limit $8) r
         limit $8) s
     order by s.n`

// While the subscription is being widened, an event whose transaction had not ended at the last sweep waits for the
// next: an earlier one of its key may have no delivery yet. What another server wrote, before a backup was restored here,
// has ended.
const freshRows = (schema: QuotedSchema, around: string): string => `
    select r.* from mine m
     cross join lateral (
       select d.xmin as version, d.id, d.ordering_key as key,
              case when d.ordering_key = any ($10::text[]) then null else
              (select h.id from ${schema}.outbox_delivery h
                where h.subscription_id = $1 and h.lane = d.lane and h.ordering_key = d.ordering_key and h.held
                  and h.id < d.id and ${heldSince('h')} >= m.held_from
                limit 1) is not null end as blocked
         from ${schema}.outbox_delivery d
        where d.subscription_id = $1 and d.lane = m.lane and d.fresh
          and ${FRESH_POSITION} >= (select low_water from open)
          and ${FRESH_POSITION} <= (select served_to from open)${around}
          and case when (select swept from open) is null then true
                   else (select pg_visible_in_snapshot(e.xid, (select swept from open))
                             or e.xid >= (select unknown_xid from open)
                           from ${schema}.outbox_event e where e.event_id = d.event_id) end
        order by ${FRESH_POSITION}
        limit greatest($8 - (select count(*) from due_first), 0)) r
     limit greatest($8 - (select count(*) from due_first), 0)`

// Retries have their share first, then new events, then retries again if there is room left.
const wantedRows = `
    select version, id, key, true as was_held, false as blocked from due_first
    union all
    (select version, id, key, false, false from fresh where not blocked
      limit greatest($3 - (select count(*) from due_first), 0))
    union all
    (select version, id, key, true, false from due where not blocked
     offset (select count(*) from due_first)
      limit greatest($3 - (select count(*) from due_first) - (select count(*) from fresh where not blocked), 0))
    union all
    select version, id, key, true, true from due where blocked
    union all
    select version, id, key, false, true from fresh where blocked`

// While the lanes are locked nothing is waited for: a person who holds one row must not stop the heartbeat, and with it
// all else. Nothing later of its key may pass a row that could not be locked.
const takenRows = `
       select t.id from tried t
        where t.got and not t.blocked
          and ((select bool_and(got) from tried)
               or (select s.id from tried s
                    where not s.got and not s.blocked and s.key = t.key and s.id < t.id
                    limit 1) is null)`

/** Said with what was taken when something else was locked. */
const STOPPED = 'stopped'

/** Keys that a careful claim reads past ($13). */
const AROUND = `
              and d.ordering_key <> all ($13::text[])`

const lookedAt = (schema: QuotedSchema, around: string): string => `
  with open as materialized (
    select s.id, case when ${ERA} = $7 then $6::bigint else 0 end as low_water,
           ${dueFrom('$7', '$11')} as due_from, ${heldFrom('$7', '$12')} as held_from,
           coalesce(s.served_to, 9223372036854775807) as served_to,
           case when s.served_to is not null then s.joined_snapshot end as swept,
           case when pg_snapshot_xmax(s.joined_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
                then pg_snapshot_xmax(pg_current_snapshot()) end as unknown_xid
      from ${schema}.outbox_subscription s
     where s.id = $1 and s.paused_at is null and (s.state = 'active' or s.served_to is not null)
  ),
  lease as materialized (
    select ${newLeaseToken(schema)} as token, clock_timestamp() as since
  ),
  mine as materialized (${withHeldFrom(ownedLanes(schema, { worker: '$2', lanes: '$4', epochs: '$5' }))}),
  due as materialized (${dueRows(schema, around)}),
  due_first as materialized (select * from due where not blocked limit $9),
  fresh as materialized (${freshRows(schema, around)}),
  tried as materialized (${tryLock(schema, `(${wantedRows})`, '$1')})`

// A row of a key that waits for an earlier one is parked behind it: it leaves the indexes of what is fresh and of what is
// due, so that a blocked key is met once and not at every claim.
const claimLanesSql = (schema: QuotedSchema, around: string): string => `${lookedAt(schema, around)},
  parked as (
    update ${schema}.outbox_delivery d
       set fresh = false, held = true, held_since = ${HELD_NOW}, next_retry_at = 'infinity', updated_at = clock_timestamp()
     where d.id = any (array(select id from tried where got and blocked)) and d.subscription_id = $1
    returning 1
  ),
  claimed as (
    update ${schema}.outbox_delivery d
       set status = 'PROCESSING', fresh = false, held = false, held_since = null, next_retry_at = null,
           attempt_count = d.attempt_count + 1,
           last_attempt_at = (select since from lease), updated_at = (select since from lease), locked_by = $2,
           locked_until = ${LEASE_OF_LANES},
           lease_token = (select token from lease)
     where d.id = any (array(${takenRows})) and d.subscription_id = $1
    returning d.id, ${packedDelivery(
      schema,
      `case when d.id in (select id from tried where was_held) then '${MARKS.held}' else '${MARKS.none}' end`,
    )}
  ),${recordLease(schema, { ...RECORD_OF_LANES, positions: 'array(select id from claimed)' })}
  select c.packed, case when c.packed is null then l.left when l.stopped then '${STOPPED}' end
    from (select not bool_and(t.got) as stopped,
                 json_build_object('parked', count(*) filter (where t.got and t.blocked),
                   'stopped', coalesce(json_agg(distinct t.key) filter (where not t.got), '[]'))::text as left
            from tried t) l
    left join (select packed from claimed where packed is not null) c on true`

/** How many rows a claim looks at that found nothing but rows to park, and how often it looks again. */
const LOOKS = [1_000, 5_000, 5_000] as const

/** How many it looks at when it leaves out keys of which somebody has a row locked: those rows are met every time. */
const FARTHEST_LOOK = 20_000

/** What kept a look from taking anything. */
interface LeftOver {
  /** How many rows wait for an earlier one of their key, and are parked now. */
  readonly parked: number
  /** The keys of which somebody else has a row locked. */
  readonly stopped: readonly string[]
}

/** What a claim of lanes is about. */
export interface LaneClaim {
  readonly request: LaneClaimRequest
  readonly bound: LowWaterBound
  /** How many places are kept for retries. */
  readonly duePlaces: number
  /** Keys of which nothing is taken or parked. */
  readonly around: readonly string[]
}

/**
 * Takes deliveries of owned lanes: runs of held ones that may go on, and fresh ones whose key waits for nothing. Where
 * all it sees has to wait, it parks that and looks further: what stands behind must not seem to be nothing. Where rows
 * are locked it looks again without their keys. It always begins at the first row: where an earlier look ended is no
 * place to go on from, because an earlier event of a key that it did not see may have come meanwhile.
 */
export function claimLanes(
  pool: PgPool,
  schema: QuotedSchema,
  { around, ...claim }: LaneClaim,
): Promise<readonly LaneDelivery[]> {
  return lookRepeatedly(claim, [...around], [claim.request.limit, ...LOOKS], (left, look, stopped) => {
    const farthest = Math.max(left, stopped.length > 0 ? FARTHEST_LOOK : look)
    const values = valuesOf(claim, left, farthest, stopped)
    return withClient(pool, (client) => keptQuery(client, 'claim_lanes', claimLanesSql(schema, ''), values))
  })
}

/** How often a careful claim looks. */
const CAREFUL_LOOKS = 100

/** The same, but no statement touches more rows than the claim's limit: for finding out which of them is refused. */
export function claimLanesCarefully(
  pool: PgPool,
  schema: QuotedSchema,
  { around, ...claim }: LaneClaim,
): Promise<readonly LaneDelivery[]> {
  const looks = Array<number>(CAREFUL_LOOKS).fill(claim.request.limit)
  return lookRepeatedly(claim, [...around], looks, (left, look, stopped) =>
    withClient(pool, (client) =>
      rawQuery(client, claimLanesSql(schema, AROUND), [...valuesOf(claim, left, look, []), stopped]),
    ),
  )
}

const candidatesSql = (schema: QuotedSchema): string => `${lookedAt(schema, AROUND)}
  select t.id, d.event_id, t.key
    from tried t
   cross join lateral (
     select d.event_id from ${schema}.outbox_delivery d where d.id = t.id and d.subscription_id = $1 offset 0) d
   where t.got`

/** What the first statement of a careful claim would take or park. */
export function laneCandidates(
  pool: PgPool,
  schema: QuotedSchema,
  { around, ...claim }: LaneClaim,
): Promise<readonly Candidate[]> {
  const { limit } = claim.request
  return readCandidates(pool, candidatesSql(schema), [...valuesOf(claim, limit, limit, []), around])
}

async function lookRepeatedly(
  { request }: Omit<LaneClaim, 'around'>,
  stopped: string[],
  looks: readonly number[],
  send: (left: number, look: number, stopped: readonly string[]) => Promise<readonly RawRow[]>,
): Promise<readonly LaneDelivery[]> {
  const { subscriptionId, workerId, limit } = request
  const taken: LaneDelivery[] = []
  for (const look of looks) {
    const rows = await send(limit - taken.length, look, stopped).catch((error: unknown) => {
      // What was taken before is taken; the next claim meets the same row again.
      if (taken.length > 0 && isAboutARow(error)) return []
      throw error
    })
    const [packed, note] = rows[0] ?? []
    if (typeof packed === 'string') {
      taken.push(...toDeliveries(rows, subscriptionId, workerId))
      if (note !== STOPPED || taken.length >= limit) break
    } else {
      // Where nothing was claimed, one row tells why.
      if (typeof note !== 'string') break
      const leftOver = JSON.parse(note) as LeftOver
      if (leftOver.parked === 0 && leftOver.stopped.length === 0) break
      stopped.push(...leftOver.stopped)
    }
  }
  return taken
}

function valuesOf(
  { request, bound, duePlaces }: Omit<LaneClaim, 'around'>,
  limit: number,
  look: number,
  stopped: readonly string[],
): readonly unknown[] {
  const { subscriptionId, workerId, lanes } = request
  return [
    subscriptionId,
    workerId,
    limit,
    lanes.map(({ lane }) => lane),
    lanes.map(({ epoch }) => epoch),
    bound.position,
    bound.era,
    look,
    Math.min(limit, duePlaces),
    stopped,
    bound.dueFrom,
    bound.heldFrom,
  ]
}
