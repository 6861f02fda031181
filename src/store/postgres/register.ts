import { SubscriptionConflictError } from '../../runtime/errors.ts'
import type { RegisteredSubscription, SubscriptionDefinition } from '../subscription-store.ts'
import { type PgClient, type PgPool, type RawRow, rawQuery, withClient, withTransaction } from './client.ts'
import { type QuotedSchema, sequenceName } from './identifiers.ts'
import { readSubscriptionByName, SUBSCRIPTION_COLUMNS, toSubscription } from './read-subscriptions.ts'

// One registration at a time. Publishers never wait for it.
const serialiseSql = (schema: QuotedSchema): string =>
  `select pg_advisory_xact_lock(hashtextextended('commitpost register ' || ${sequenceName(schema, '')}, 0))`

// A publisher with an older snapshot cannot see the subscription. It can see this number, because a sequence is read
// as it is and not as it was; outbox_fan_out turns it away.
const announceSql = (schema: QuotedSchema): string =>
  `select setval(${sequenceName(schema, 'outbox_registry_xid')}, pg_current_xact_id()::text::bigint)`

const insertSql = (schema: QuotedSchema): string => `
  with added as (
    insert into ${schema}.outbox_subscription (name, streams, stream_like, event_types, order_by, lanes, on_dead,
           max_attempts, start_from, start_at, state, joined_snapshot)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::timestamptz, 'joining', pg_current_snapshot())
    returning *
  ),
  lanes as (
    insert into ${schema}.outbox_lane (subscription_id, lane)
    select a.id, l.lane from added a cross join lateral generate_series(0, a.lanes - 1) as l(lane)
    returning 1
  )
  select ${SUBSCRIPTION_COLUMNS} from added s`

// What a subscription takes only grows: in a rolling deploy the old code and the new one register in turn. A wider
// one joins again, as if it were new, for what it did not take before. One that is still joining keeps its beginning.
const widenSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_subscription s
     set streams = case when s.streams is null or $2::text[] is null then null
                        else array(select distinct unnest(s.streams || $2::text[]) order by 1) end,
         stream_like = case when s.stream_like is null or $3::text[] is null then null
                            else array(select distinct unnest(s.stream_like || $3::text[]) order by 1) end,
         event_types = case when s.event_types is null or $4::text[] is null then null
                            else array(select distinct unnest(s.event_types || $4::text[]) order by 1) end,
         start_from = case when s.state = 'joining' then s.start_from else 'now' end,
         start_at = case when s.state = 'joining' then s.start_at end,
         joined_snapshot = case when s.state = 'joining' then s.joined_snapshot else pg_current_snapshot() end,
         state = 'joining', barrier = null, swept_to = null, generation = s.generation + 1,
         updated_at = clock_timestamp()
   where s.name = $1
  returning ${SUBSCRIPTION_COLUMNS}`

const tuneSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_subscription s
     set max_attempts = $2, on_dead = $3, updated_at = clock_timestamp()
   where s.name = $1 and (s.max_attempts, s.on_dead) is distinct from ($2, $3)`

const isWiderSql = (schema: QuotedSchema): string => `
  select s.state = 'retired'
      or (s.stream_like is not null and ($2::text[] is null or not $2::text[] <@ s.stream_like))
      or (s.event_types is not null and ($3::text[] is null or not $3::text[] <@ s.event_types))
    from ${schema}.outbox_subscription s
   where s.name = $1`

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
  return withTransaction(pool, async (client) => {
    await rawQuery(client, serialiseSql(schema), [])
    const existing = await readSubscriptionByName(client, schema, definition.name)
    if (existing === null) return insert(client, schema, definition)
    refuseConflict(existing, definition)
    await rawQuery(client, tuneSql(schema), [definition.name, definition.maxAttempts, definition.onDead])
    if (!(await isWider(client, schema, definition))) return existing
    return widen(client, schema, definition)
  })
}

const isUnchangedSql = (schema: QuotedSchema): string => `
  select (s.max_attempts, s.on_dead) = ($2, $3) from ${schema}.outbox_subscription s where s.name = $1`

async function isUnchanged(client: PgClient, schema: QuotedSchema, definition: SubscriptionDefinition) {
  const { name, maxAttempts, onDead } = definition
  const [row] = await rawQuery(client, isUnchangedSql(schema), [name, maxAttempts, onDead])
  return row?.[0] === 't' && !(await isWider(client, schema, definition))
}

async function isWider(client: PgClient, schema: QuotedSchema, definition: SubscriptionDefinition) {
  const values = [definition.name, streamPatterns(definition.streams), definition.eventTypes]
  const [row] = await rawQuery(client, isWiderSql(schema), values)
  return row?.[0] === 't'
}

async function insert(client: PgClient, schema: QuotedSchema, definition: SubscriptionDefinition) {
  await rawQuery(client, announceSql(schema), [])
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
  ])
  return toSubscription(row as RawRow)
}

async function widen(client: PgClient, schema: QuotedSchema, definition: SubscriptionDefinition) {
  await rawQuery(client, announceSql(schema), [])
  const { name, streams, eventTypes } = definition
  const [row] = await rawQuery(client, widenSql(schema), [name, streams, streamPatterns(streams), eventTypes])
  return toSubscription(row as RawRow)
}

/** `shop.*` becomes the LIKE pattern `shop.%`; everything else stands for itself. */
function streamPatterns(streams: readonly string[] | null): readonly string[] | null {
  if (streams === null) return null
  return streams.map((stream) => stream.replaceAll(/[\\%_]/g, '\\$&').replaceAll('*', '%'))
}

function refuseConflict(existing: RegisteredSubscription, definition: SubscriptionDefinition): void {
  if (existing.orderBy === definition.orderBy && existing.lanes === definition.lanes) return
  throw new SubscriptionConflictError(
    definition.name,
    `order "${existing.orderBy}" with ${existing.lanes} lanes, not order "${definition.orderBy}" with ` +
      `${definition.lanes} lanes; events already stand in its lanes`,
  )
}
