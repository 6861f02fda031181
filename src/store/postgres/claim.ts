import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { ClaimRequest } from '../queue-store.ts'
import { type Candidate, readCandidates } from './claim-candidate.ts'
import { claimedOn, flushLater, mayFlushLater } from './claim-flush.ts'
import { keptQuery, type PgClient, type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import {
  changedDelivery,
  changedWithEvents,
  joinEvents,
  MARKS,
  packedDelivery,
  toDeliveries,
} from './event-row.ts'
import { FRESH_POSITION } from './fresh-position.ts'
import type { QuotedSchema } from './identifiers.ts'
import { keptText } from './kept-text.ts'
import { newLeaseToken, recordLease } from './lease-sql.ts'
import { dueFrom, ERA, type LowWaterBound } from './low-water.ts'

/** What the claim leaves alone, where there is something ($10): the text of every day knows nothing of it. */
const AROUND = `
         and d.id <> all ($10::bigint[])`

const dueRows = (schema: QuotedSchema, limit: string, also: string): string => `
    select array(
      select d.id from ${schema}.outbox_delivery d
       where d.subscription_id = (select id from open) and d.lane = 0 and d.held
         and not d.suspect and d.next_retry_at >= (select due_from from open)
         and d.next_retry_at <= (select clock_timestamp())${also}
       order by d.next_retry_at, d.id
       limit ${limit}
         for update skip locked) as ids`

// Walks outbox_delivery_due for retries and outbox_delivery_fresh, from the low-water bound, for new events; retries
// have their share first, and then whatever new events leave free.
// Rows are found and locked first and then updated by their key: an UPDATE with a join or a sub-select with LIMIT may
// update more rows than it locked, and leaves the planner a join order to get wrong. By key and not by ctid, which two
// partitions may both have. A row that was changed since the statement began is locked, and asked again, as it is now,
// and the UPDATE follows it there.
const lookedAt = (schema: QuotedSchema, around: string): string => `
  with open as materialized (
    select s.id, case when ${ERA} = $6 then $5::bigint else 0 end as low_water,
           ${dueFrom('$6', '$8')} as due_from
      from ${schema}.outbox_subscription s
     where s.id = $1 and s.paused_at is null and s.state <> 'retired'
  ),
  lease as materialized (
    select ${newLeaseToken(schema)} as token, clock_timestamp() as since,
           clock_timestamp() + $4 * interval '1 millisecond' as until, ${flushLater('$9')} as flushed_later
  ),
  due as materialized (${dueRows(schema, '$7', around)}),
  fresh as materialized (
    select array(
      select d.id from ${schema}.outbox_delivery d
       where d.subscription_id = (select id from open) and d.lane = 0 and d.fresh
         and ${FRESH_POSITION} >= (select low_water from open)${around}
       order by ${FRESH_POSITION}
       limit greatest($3 - cardinality((select ids from due)), 0)
         for update skip locked) as ids
  ),
  more as materialized (${dueRows(
    schema,
    `case when cardinality((select ids from due)) < $7 then 0
            else greatest($3 - $7 - cardinality((select ids from fresh)), 0) end`,
    `
         and d.id <> all ((select ids from due)::bigint[])${around}`,
  )}
  ),
  taken as materialized (
    select (select ids from due) || (select ids from fresh) || (select ids from more) as ids
  )`

const TAKEN = 'd.id = any ((select ids from taken)::bigint[]) and d.subscription_id = $1'

const recorded = (schema: QuotedSchema): string =>
  recordLease(schema, {
    until: '(select until from lease)',
    lanes: `'{0}'`,
    positions: '(select ids from taken)',
  })

const updateSql = (schema: QuotedSchema, returned: string): string => `
  update ${schema}.outbox_delivery d
     set status = 'PROCESSING', fresh = false, held = false, held_since = null, next_retry_at = null,
         attempt_count = d.attempt_count + 1,
         last_attempt_at = (select since from lease), updated_at = (select since from lease), locked_by = $2,
         locked_until = (select until from lease), lease_token = (select token from lease)
   where ${TAKEN}
  returning ${returned}`

const NO_MARKS = `'${MARKS.none}'`

const claimSql = (schema: QuotedSchema, around: string): string =>
  `${lookedAt(schema, around)},${recorded(schema)}${updateSql(schema, packedDelivery(schema, NO_MARKS))}`

const plainClaimSql = keptText((schema) => claimSql(schema, ''))

const manyClaimSql = keptText(
  (schema) => `${lookedAt(schema, '')},${recorded(schema)},
  changed as (${updateSql(schema, changedDelivery(NO_MARKS))}
  )${changedWithEvents(schema)}`,
)

/** From so many on the events are read together. Claims ask for as many only once there was a backlog. */
const MANY = 500

/**
 * Takes fresh deliveries and due retries of an unordered subscription, in position order, under one lease token. Those at
 * the positions `around` are left alone.
 */
export async function claim(
  pool: PgPool,
  schema: QuotedSchema,
  request: ClaimRequest,
  bound: LowWaterBound,
  duePlaces: number,
  around: readonly string[] = [],
): Promise<readonly ClaimedDelivery[]> {
  const { subscriptionId, workerId, limit } = request
  return withClient(pool, async (client) => {
    const values = valuesOf(request, bound, duePlaces, mayFlushLater(client))
    const isMany = around.length === 0 && limit >= MANY
    const rows = isMany
      ? await keptQuery(client, 'claim_many', manyClaimSql(schema), values)
      : await claimFew(client, schema, values, around)
    const deliveries = (isMany ? joinEvents : toDeliveries)(rows, subscriptionId, workerId)
    if (deliveries.length > 0) claimedOn(client)
    return deliveries
  })
}

function claimFew(
  client: PgClient,
  schema: QuotedSchema,
  values: readonly unknown[],
  around: readonly string[],
): Promise<readonly RawRow[]> {
  return around.length === 0
    ? keptQuery(client, 'claim', plainClaimSql(schema), values)
    : rawQuery(client, claimSql(schema, AROUND), [...values, around])
}

const candidatesSql = (schema: QuotedSchema): string => `${lookedAt(schema, AROUND)}
  select d.id, d.event_id, d.ordering_key from ${schema}.outbox_delivery d
   where ${TAKEN} and $2::text is not null`

/** What `claim` would take. */
export function claimCandidates(
  pool: PgPool,
  schema: QuotedSchema,
  request: ClaimRequest,
  bound: LowWaterBound,
  duePlaces: number,
  around: readonly string[],
): Promise<readonly Candidate[]> {
  return readCandidates(pool, candidatesSql(schema), [...valuesOf(request, bound, duePlaces, false), around])
}

function valuesOf(
  { subscriptionId, workerId, limit, leaseMs }: ClaimRequest,
  bound: LowWaterBound,
  duePlaces: number,
  later: boolean,
): readonly unknown[] {
  return [
    subscriptionId,
    workerId,
    limit,
    leaseMs,
    bound.position,
    bound.era,
    duePlaces,
    bound.dueFrom,
    later,
  ]
}
