import type { LaneDelivery, SuspectClaimRequest } from '../queue-store.ts'
import { type Candidate, readCandidates } from './claim-candidate.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { MARKS, packedDelivery, toDeliveries } from './event-row.ts'
import type { QuotedSchema } from './identifiers.ts'
import { LEASE_OF_LANES, ownedLanes, RECORD_OF_LANES } from './lane-sql.ts'
import { newLeaseToken, recordLease } from './lease-sql.ts'

// Suspects that are due and, on an ordered subscription, in an owned lane with nothing of their key before them, neither
// held nor in hand (which is read once, and not for every row): at most the head of each key. Oldest first, so that those
// of a group that crashed come first again and are halved by the next process, however many others wait (see
// src/queue/suspects.ts).
// A crash is charged to a suspect that runs alone and to no other, and PROCESSING rows say so: none is a suspect when it
// is claimed, and mark-alone.ts makes it one just before it runs alone. If the holder of others vanishes, or never learns
// of them, return-lapsed.ts treats them as neighbours. It cannot be found out then, because the lanes of a group may be
// taken over one by one.
const lookedAt = (schema: QuotedSchema): string => `
  with open as materialized (
    select s.id, s.lanes from ${schema}.outbox_subscription s
     where s.id = $1 and s.paused_at is null
       and (s.state = 'active' or s.state = 'joining' and (s.lanes = 0 or s.served_to is not null))
  ),
  lease as materialized (select ${newLeaseToken(schema)} as token),
  mine as materialized (
    select 0::smallint as lane, clock_timestamp() + $3 * interval '1 millisecond' as until
      from open o where o.lanes = 0
    union all
    select * from (${ownedLanes(schema, { worker: '$2', lanes: '$4', epochs: '$5' })}) owned
  ),
  busy as materialized (
    select p.ordering_key as key from ${schema}.outbox_in_hand p
     where p.subscription_id = $1 and p.lanes && array(select lane from mine) and p.ordering_key is not null
  ),
  pick as materialized (
    select array(
      select d.id from ${schema}.outbox_delivery d
       where d.subscription_id = $1 and d.lane = any (array(select lane from mine)) and d.held
         and d.suspect and d.next_retry_at <= (select clock_timestamp()) and d.id <> all ($7::bigint[])
         and (d.ordering_key is null or
              ((select h.id from ${schema}.outbox_delivery h
                where h.subscription_id = $1 and h.lane = d.lane and h.ordering_key = d.ordering_key and h.held
                  and h.id < d.id
                limit 1) is null
              and d.ordering_key not in (select key from busy)))
       order by d.id
       limit $6
         for update skip locked) as ids
  )`

const claimSuspectsSql = (
  schema: QuotedSchema,
): string => `${lookedAt(schema)},${recordLease(schema, { ...RECORD_OF_LANES, positions: '(select ids from pick)' })}
  update ${schema}.outbox_delivery d
     set status = 'PROCESSING', held = false, held_since = null, suspect = false, next_retry_at = null,
         attempt_count = d.attempt_count + 1,
         last_attempt_at = clock_timestamp(), updated_at = clock_timestamp(), locked_by = $2,
         locked_until = ${LEASE_OF_LANES},
         lease_token = (select token from lease)
   where d.id = any ((select ids from pick)::bigint[]) and d.subscription_id = $1
  returning ${packedDelivery(schema, `'${MARKS.suspect}'`)}`

/** Takes up to so many suspects that are due, in position order, under one lease token; none at the positions `around`. */
export async function claimSuspects(
  pool: PgPool,
  schema: QuotedSchema,
  request: SuspectClaimRequest,
  around: readonly string[] = [],
): Promise<readonly LaneDelivery[]> {
  const values = valuesOf(request, around)
  const rows = await withClient(pool, (client) => rawQuery(client, claimSuspectsSql(schema), values))
  return toDeliveries(rows, request.subscriptionId, request.workerId)
}

const candidatesSql = (schema: QuotedSchema): string => `${lookedAt(schema)}
  select d.id, d.event_id, d.ordering_key from ${schema}.outbox_delivery d
   where d.id = any ((select ids from pick)::bigint[]) and d.subscription_id = $1`

/** What `claimSuspects` would take. */
export function suspectCandidates(
  pool: PgPool,
  schema: QuotedSchema,
  request: SuspectClaimRequest,
  around: readonly string[],
): Promise<readonly Candidate[]> {
  return readCandidates(pool, candidatesSql(schema), valuesOf(request, around))
}

function valuesOf(
  { subscriptionId, workerId, leaseMs, limit, lanes = [] }: SuspectClaimRequest,
  around: readonly string[],
): readonly unknown[] {
  const numbers = lanes.map(({ lane }) => lane)
  const epochs = lanes.map(({ epoch }) => epoch)
  return [subscriptionId, workerId, leaseMs, numbers, epochs, limit, around]
}
