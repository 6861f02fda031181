import type { DeliveryStatus } from '../../delivery/delivery.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import type { Scope } from './read-scopes.ts'
import type { StandIns } from './read-stand-ins.ts'
import { impossible, StatementValues } from './verify-sql.ts'
import { isWhole, type PositionRange } from './verify-window.ts'

// The quick way: no event is compared with its delivery. Events are put together by what decides who wants them, and
// both sides are counted and added up to a digest of (event id, position). Where number and digest agree, the two sets
// are the same; where not, verify-exceptions.ts looks at every single one.

/** What one side of the equation comes to. */
export interface Digest {
  readonly count: number
  readonly digest: string
}

/** The deliveries of one subscription. */
export interface DeliveryDigest extends Digest {
  readonly counts: Readonly<Record<DeliveryStatus, number>>
  readonly impossible: number
}

const digestOf = (row: string): string => `bit_xor(uuid_hash_extended(${row}.event_id, ${row}.id))`

// Where there are none, which is nearly always, the planner takes the question out: it is not asked of every row.
const isNoStandIn = (row: string): string =>
  `(cardinality($4::uuid[]) = 0 or ${row}.event_id <> all ($4::uuid[]))`

/** The events that each subscription is meant to have. */
export async function digestEvents(
  client: PgClient,
  schema: QuotedSchema,
  scopes: readonly Scope[],
  standIns: StandIns,
  { first, last }: PositionRange,
): Promise<ReadonlyMap<number, Digest>> {
  const values = new StatementValues([first, last, scopes.map(({ id }) => id), standIns.eventIds])
  const wants = wantsColumns(scopes, values)
  const rows = await rawQuery(client, eventsSql(schema, wants), values.all)
  return new Map(
    rows.map(([id, count, digest]) => [Number(id), { count: Number(count), digest: digest as string }]),
  )
}

// Who wants an event depends on its stream, its type and a few yes-or-no questions about when it was written: there are
// few such groups, however many events there are. Stand-ins are left out: among the deliveries they count as the event
// whose place they took. Texts are told apart byte by byte, which costs less than by the rules of a language.
const eventsSql = (schema: QuotedSchema, wants: readonly string[]): string => `
  with written as materialized (
    select e.stream collate "C" as stream, e.event_type collate "C" as event_type, ${wants.map((want, n) => `${want} as w${n}, `).join('')}
           count(*) as count, ${digestOf('e')} as digest
      from ${schema}.outbox_event e
     where e.id between $1 and $2 and ${isNoStandIn('e')}
     group by 1, 2${wants.map((_, n) => `, w${n}`).join('')}
  ),
  wanted as (
    select distinct k.subscription_id, w.*
      from written w
      join ${schema}.outbox_scope k
        on k.id = any ($3::bigint[])
       and (array[${wants.map((_, n) => `w.w${n}`).join(', ')}]::boolean[])[array_position($3::bigint[], k.id)]
       and ${schema}.outbox_matches(k.stream_like, k.event_types, w.stream, w.event_type)
  )
  select w.subscription_id, sum(w.count), bit_xor(w.digest) from wanted w group by w.subscription_id`

function wantsColumns(scopes: readonly Scope[], values: StatementValues): readonly string[] {
  const newest = newestTransaction(scopes)
  const isNewer = newest === null ? null : `e.xid >= ${values.add(newest, 'xid8')}`
  return scopes.map((scope) => {
    if (scope.abandoned || scope.beganSnapshot === null) return 'false'
    const started = startedSql(scope, scope.beganSnapshot, isNewer ?? 'false', values)
    if (scope.endedSnapshot === null) return started
    return `(${started} and pg_visible_in_snapshot(e.xid, ${values.add(scope.endedSnapshot, 'pg_snapshot')}))`
  })
}

/** Whether `e` is among what the scope began with. The first question answers for nearly all events. */
function startedSql(scope: Scope, began: string, isNewer: string, values: StatementValues): string {
  if (scope.startFrom === 'beginning') return 'true'
  const isLater = `${isNewer} or not pg_visible_in_snapshot(e.xid, ${values.add(began, 'pg_snapshot')})`
  if (scope.startAt === null) return `(${isLater})`
  // By a query of its own, which is run once: to read a time is not cheap.
  return `(e.created_at >= (select ${values.add(scope.startAt, 'timestamptz')}) or ${isLater})`
}

/** An id that none of the snapshots had come to: whatever is from there on is later than all of them. */
function newestTransaction(scopes: readonly Scope[]): string | null {
  const bounds = scopes
    .filter(({ startFrom, abandoned }) => startFrom !== 'beginning' && !abandoned)
    .flatMap(({ beganSnapshot }) => beganSnapshot?.split(':')[1] ?? [])
  return bounds.toSorted((one, other) => (BigInt(one) < BigInt(other) ? -1 : 1)).at(-1) ?? null
}

// Not by the subscriptions there are: a delivery of one whose row is gone would be seen by nobody.
const isAsked = (row: string): string => `($3::int[] is null or ${row}.subscription_id = any ($3::int[]))`

// Grouped before it is judged: what is asked of every row costs, what is asked of a few groups does not. Deliveries of
// stand-ins are few, and are looked up. So are those in hand: whichever else says that it is, is so by a claim that is
// not written down, and nobody would ever return it.
const deliveriesSql = (schema: QuotedSchema): string => `
  with grouped as materialized (
    select d.subscription_id, d.status, d.held, d.last_attempt_at is null as is_untried, count(*) as count,
           ${digestOf('d')} as digest
      from ${schema}.outbox_delivery d
     where d.id between $1 and $2 and ${isAsked('d')} and ${isNoStandIn('d')}
     group by d.subscription_id, d.status, d.held, is_untried
    union all
    select d.subscription_id, d.status, d.held, d.last_attempt_at is null, 1, uuid_hash_extended(v.original, d.id)
      from unnest($4::uuid[], $5::uuid[]) as v(event_id, original)
      join ${schema}.outbox_event e on e.event_id = v.event_id
      join ${schema}.outbox_delivery d on d.id = e.id and d.event_id = e.event_id
     where d.id between $1 and $2 and ${isAsked('d')}
  ),
  in_hand as materialized (
    select h.subscription_id, count(*) as count from ${schema}.outbox_in_hand h
     where h.id between $1 and $2 and ${isAsked('h')} and h.status = 'PROCESSING'
     group by h.subscription_id
  ),
  counted as (
    select g.subscription_id, sum(g.count) as count, bit_xor(g.digest) as digest,
           coalesce(sum(g.count) filter (where g.status = 'PENDING'), 0) as pending,
           coalesce(sum(g.count) filter (where g.status = 'PROCESSING'), 0) as processing,
           coalesce(sum(g.count) filter (where g.status = 'DONE'), 0) as done,
           coalesce(sum(g.count) filter (where g.status = 'DEAD'), 0) as dead,
           coalesce(sum(g.count) filter (where ${impossible('g')}), 0) as impossible
      from grouped g group by g.subscription_id
  )
  select c.subscription_id, c.count, c.digest, c.pending, c.processing, c.done, c.dead,
         c.impossible + c.processing - coalesce(h.count, 0)
    from counted c left join in_hand h using (subscription_id)`

// The planner takes reading all deliveries for as cheap as reading a third of them by their key, which is half the work.
const SCANS = `select set_config('enable_seqscan', $1, true)`

/** The deliveries that each of these subscriptions has; null for all that any delivery names. */
export async function digestDeliveries(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionIds: readonly number[] | null,
  { eventIds, originals }: StandIns,
  { first, last }: PositionRange,
): Promise<ReadonlyMap<number, DeliveryDigest>> {
  const values = [first, last, subscriptionIds, eventIds, originals]
  await rawQuery(client, SCANS, [isWhole({ first, last }) ? 'on' : 'off'])
  const rows = await rawQuery(client, deliveriesSql(schema), values)
  await rawQuery(client, SCANS, ['on'])
  return new Map(
    rows.map((row) => {
      const count = (column: number): number => Number(row[column])
      const counts = { PENDING: count(3), PROCESSING: count(4), DONE: count(5), DEAD: count(6) }
      return [
        Number(row[0]),
        { count: count(1), digest: row[2] as string, counts, impossible: count(7) },
      ] as const
    }),
  )
}
