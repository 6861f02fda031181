import { SubscriptionConflictError } from '../../runtime/errors.ts'
import type { RegisteredSubscription, SubscriptionDefinition } from '../subscription-store.ts'
import { announceRegistration } from './announce-registration.ts'
import { type PgClient, type PgPool, type RawRow, rawQuery, withClient, withTransaction } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { readSubscriptionByName, SUBSCRIPTION_COLUMNS, toSubscription } from './read-subscriptions.ts'
import { serveOn } from './serve-on.ts'
import { slotNameSql } from './slot-name.ts'
import { streamPatterns } from './stream-patterns.ts'
import { isWider, widen } from './widen.ts'

// One registration at a time. Publishers never wait for it.
const serialiseSql = (schema: QuotedSchema): string => `select ${schema}.outbox_lock_registry()`

const insertSql = (schema: QuotedSchema): string => `
  with added as (
    insert into ${schema}.outbox_subscription (name, streams, stream_like, event_types, order_by, lanes, on_dead,
           max_attempts, start_from, start_at, engine, state, joined_snapshot)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::timestamptz, $11,
            case $11 when 'stream' then 'active' else 'joining' end, pg_current_snapshot())
    returning *
  ),
  lanes as (
    insert into ${schema}.outbox_lane (subscription_id, lane)
    select a.id, l.lane from added a cross join lateral generate_series(0, a.lanes - 1) as l(lane)
    returning 1
  ),
  stream as (
    insert into ${schema}.outbox_stream (subscription_id, slot, snapshot, start_at)
    select a.id, ${slotNameSql('$12', 'a.id')},
           case a.start_from when 'now' then a.joined_snapshot else ${BEFORE_ALL} end, a.start_at
      from added a where a.engine = 'stream'
    returning 1
  )
  select ${SUBSCRIPTION_COLUMNS} from added s`

/** A snapshot by which nothing had ended. */
const BEFORE_ALL = "'1:1:'::pg_snapshot"

const tuneSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_subscription s
     set max_attempts = $2, on_dead = $3, updated_at = clock_timestamp()
   where s.name = $1 and s.state <> 'retired' and (s.max_attempts, s.on_dead) is distinct from ($2, $3)`

/** Registers a subscription, or widens what it takes. Returns it as the database knows it. */
export async function register(
  pool: PgPool,
  schema: QuotedSchema,
  definition: SubscriptionDefinition,
): Promise<RegisteredSubscription> {
  const known = await withClient(pool, (client) => readSubscriptionByName(client, schema, definition.name))
  // The daily case: nothing changed. No lock, no new transaction id, no publisher turned away.
  if (known !== null && (await withClient(pool, (client) => isUnchanged(client, schema, definition)))) {
    refuseConflict(known, definition)
    return known
  }
  const registered = await withTransaction(pool, (client) => insertOrWiden(client, schema, definition))
  if (registered.lanes > 0 && registered.state === 'joining') {
    await withClient(pool, (client) => serveOn(client, schema, String(registered.id)))
  }
  return registered
}

async function insertOrWiden(
  client: PgClient,
  schema: QuotedSchema,
  definition: SubscriptionDefinition,
): Promise<RegisteredSubscription> {
  await rawQuery(client, serialiseSql(schema), [])
  const existing = await readSubscriptionByName(client, schema, definition.name)
  if (existing === null) return insert(client, schema, definition)
  refuseConflict(existing, definition)
  await rawQuery(client, tuneSql(schema), [definition.name, definition.maxAttempts, definition.onDead])
  return (await isWider(client, schema, definition)) ? widen(client, schema, definition) : existing
}

// Whoever widened it may be gone before its snapshot was taken: then it is taken now, so that what is being published at
// this moment is not left out.
const isUnchangedSql = (schema: QuotedSchema): string => `
  select (s.max_attempts, s.on_dead) = ($2, $3) and s.joined_snapshot is not null from ${schema}.outbox_subscription s
   where s.name = $1 and s.state <> 'retired'`

async function isUnchanged(client: PgClient, schema: QuotedSchema, definition: SubscriptionDefinition) {
  const { name, maxAttempts, onDead } = definition
  const [row] = await rawQuery(client, isUnchangedSql(schema), [name, maxAttempts, onDead])
  return row?.[0] === 't' && !(await isWider(client, schema, definition))
}

async function insert(client: PgClient, schema: QuotedSchema, definition: SubscriptionDefinition) {
  await announceRegistration(client, schema)
  const { startFrom } = definition
  const [row] = await rawQuery(client, insertSql(schema), [
    definition.name,
    definition.streams,
    streamPatterns(definition.streams),
    definition.eventTypes,
    definition.orderBy,
    definition.lanes,
    definition.onDead,
    definition.maxAttempts,
    startFrom instanceof Date ? 'time' : startFrom,
    startFrom instanceof Date ? startFrom.toISOString() : null,
    definition.engine ?? 'queue',
    schema,
  ])
  return toSubscription(row as RawRow)
}

function refuseConflict(existing: RegisteredSubscription, definition: SubscriptionDefinition): void {
  const { engine = 'queue' } = definition
  if (existing.engine !== engine) {
    throw new SubscriptionConflictError(
      definition.name,
      `its engine is '${existing.engine}', and here it is '${engine}'; the engine is fixed for the life of a ` +
        'subscription. Give it another name, or retire it first',
      { registered: `engine: '${existing.engine}'`, declared: `engine: '${engine}'` },
    )
  }
  if (existing.orderBy === definition.orderBy && existing.lanes === definition.lanes) return
  throw new SubscriptionConflictError(
    definition.name,
    `it is ${orderInWords(existing)}, and here it is ${orderInWords(definition)}; order and lanes are ` +
      'fixed for the life of a subscription',
    { registered: orderOptions(existing), declared: orderOptions(definition) },
  )
}

/** As the options ask for it. */
function orderOptions({ orderBy, lanes }: Pick<SubscriptionDefinition, 'orderBy' | 'lanes'>): string {
  return orderBy === 'aggregate' ? `order: '${orderBy}', lanes: ${lanes}` : `order: '${orderBy}'`
}

/** In the words of the options that ask for it. */
function orderInWords({ orderBy, lanes }: Pick<SubscriptionDefinition, 'orderBy' | 'lanes'>): string {
  switch (orderBy) {
    case 'none':
      return "unordered (order: 'none')"
    case 'aggregate':
      return lanes === 1
        ? "ordered by aggregate in 1 lane (order: 'aggregate', lanes: 1, which oneAtATime means too)"
        : `ordered by aggregate in ${lanes} lanes (order: 'aggregate', lanes: ${lanes})`
    case 'total':
      return "ordered as a whole (order: 'total')"
    default:
      return orderBy satisfies never
  }
}
