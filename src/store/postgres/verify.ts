import { NotFoundError } from '../../runtime/errors.ts'
import type { ProofExceptions, SubscriptionProof, VerifyReport, VerifyRequest } from '../proof-store.ts'
import { type PgClient, type PgPool, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { readScopes } from './read-scopes.ts'
import { readStandIns } from './read-stand-ins.ts'
import { dateOf, timeColumn } from './time-column.ts'
import { countArchived, missingArchived } from './verify-archived.ts'
import { type DeliveryDigest, type Digest, digestDeliveries, digestEvents } from './verify-digests.ts'
import { type Comparison, compareDeliveries } from './verify-exceptions.ts'
import { disagreeingLetters } from './verify-letters.ts'
import { type PositionRange, positionRange } from './verify-window.ts'
import { withSnapshot } from './with-snapshot.ts'

const subscriptionsSql = (schema: QuotedSchema): string => `
  select s.id, s.name, s.state from ${schema}.outbox_subscription s
   where $1::text is null or s.name = $1
   order by s.name, s.id`

const nowSql = `select ${timeColumn('now()')}`

interface Asked {
  readonly id: number
  readonly name: string
  readonly state: SubscriptionProof['state']
}

const NO_EVENTS: Digest = { count: 0, digest: '0' }
const NO_DELIVERIES: DeliveryDigest = {
  ...NO_EVENTS,
  counts: { PENDING: 0, PROCESSING: 0, DONE: 0, DEAD: 0 },
  impossible: 0,
}
const NONE: ProofExceptions = { count: 0, eventIds: [] }

/** Holds the events of each subscription against its deliveries. One snapshot: exact while others publish and deliver. */
export async function verify(
  pool: PgPool,
  schema: QuotedSchema,
  request: VerifyRequest,
): Promise<VerifyReport> {
  return withSnapshot(pool, schema, async (client) => {
    const [now] = await rawQuery(client, nowSql, [])
    const asked = await readAsked(client, schema, request.subscription)
    const range = await positionRange(client, schema, request)
    const subscriptions = await proofs(client, schema, asked, range, request)
    return {
      holds: subscriptions.every(({ holds }) => holds),
      at: dateOf(now?.[0] as string),
      since: request.since,
      until: request.until,
      subscriptions,
    }
  })
}

async function readAsked(
  client: PgClient,
  schema: QuotedSchema,
  name: string | null,
): Promise<readonly Asked[]> {
  const rows = await rawQuery(client, subscriptionsSql(schema), [name])
  if (name !== null && rows.length === 0) throw new NotFoundError('subscription', name)
  return rows.map(([id, found, state]) => ({
    id: Number(id),
    name: found as string,
    state: state as Asked['state'],
  }))
}

async function proofs(
  client: PgClient,
  schema: QuotedSchema,
  asked: readonly Asked[],
  range: PositionRange,
  { subscription: name, most }: VerifyRequest,
): Promise<readonly SubscriptionProof[]> {
  // Of all subscriptions, whatever is written of any: what is there of one that is not, nobody else would tell.
  const sought = name === null ? null : asked.map(({ id }) => id)
  const scopes = await readScopes(client, schema, sought)
  const standIns = await readStandIns(client, schema)
  const events = await digestEvents(client, schema, scopes, standIns, range)
  const deliveries = await digestDeliveries(client, schema, sought, standIns, range)
  const all = withRemoved(asked, [
    ...scopes.map(({ subscriptionId }) => subscriptionId),
    ...deliveries.keys(),
  ])
  const ids = all.map(({ id }) => id)
  const hasDead = [...deliveries.values()].some(({ counts }) => counts.DEAD > 0)
  const letters = await disagreeingLetters(client, schema, ids, range, hasDead)
  const archived = await countArchived(client, schema, ids, range)
  const lacking = await missingArchived(client, schema, range, archived.size > 0)
  const found: SubscriptionProof[] = []
  for (const subscription of all) {
    const wanted = events.get(subscription.id) ?? NO_EVENTS
    const had = deliveries.get(subscription.id) ?? NO_DELIVERIES
    const agrees =
      subscription.state !== 'removed' &&
      wanted.count === had.count &&
      wanted.digest === had.digest &&
      had.impossible === 0
    const comparison = agrees
      ? { matched: wanted.count, streamed: 0, awaited: 0, missing: NONE, surplus: NONE, impossible: NONE }
      : await compareDeliveries(client, schema, subscription.id, standIns, range, most)
    const disagreeing = letters.get(subscription.id) ?? []
    const judged = withLetters(comparison, disagreeing, most)
    const inArchives = {
      recorded: archived.get(subscription.id) ?? 0,
      missing: lacking.get(subscription.id) ?? [],
    }
    found.push(proofOf(subscription, had, withArchived(judged, inArchives, most), inArchives))
  }
  return found
}

/** Beside those that are there, those that only their scopes or deliveries tell of: their row was deleted by force. */
function withRemoved(asked: readonly Asked[], mentioned: readonly number[]): readonly Asked[] {
  const known = new Set(asked.map(({ id }) => id))
  const removed = [...new Set(mentioned)].filter((id) => !known.has(id)).toSorted((a, b) => a - b)
  return [...asked, ...removed.map((id): Asked => ({ id, name: `#${id}`, state: 'removed' }))]
}

function withLetters(comparison: Comparison, disagreeing: readonly string[], most: number): Comparison {
  const { count, eventIds } = comparison.impossible
  const impossible = {
    count: count + disagreeing.length,
    eventIds: [...new Set([...eventIds, ...disagreeing])].slice(0, most),
  }
  return { ...comparison, impossible }
}

interface InArchives {
  readonly recorded: number
  readonly missing: readonly string[]
}

/** What was archived was meant to be there, and was. */
function withArchived(comparison: Comparison, { recorded, missing }: InArchives, most: number): Comparison {
  const { count, eventIds } = comparison.missing
  return {
    ...comparison,
    matched: comparison.matched + recorded,
    missing: { count: count + missing.length, eventIds: [...eventIds, ...missing].slice(0, most) },
  }
}

function proofOf(
  { name, state }: Asked,
  { counts }: DeliveryDigest,
  comparison: Comparison,
  inArchives: InArchives,
): SubscriptionProof {
  const { missing, surplus, impossible } = comparison
  return {
    subscription: name,
    state,
    counts,
    archived: inArchives.recorded - inArchives.missing.length,
    holds: state !== 'removed' && missing.count + surplus.count + impossible.count === 0,
    ...comparison,
  }
}
