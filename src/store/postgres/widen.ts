import type { RegisteredSubscription, SubscriptionDefinition } from '../subscription-store.ts'
import { announceRegistration } from './announce-registration.ts'
import { type PgClient, type RawRow, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { SUBSCRIPTION_COLUMNS, toSubscription } from './read-subscriptions.ts'
import { streamPatterns } from './stream-patterns.ts'

const isWiderSql = (schema: QuotedSchema): string => `
  select (s.stream_like is not null and ($2::text[] is null or not $2::text[] <@ s.stream_like))
      or (s.event_types is not null and ($3::text[] is null or not $3::text[] <@ s.event_types))
    from ${schema}.outbox_subscription s
   where s.name = $1 and s.state <> 'retired'`

// What a subscription takes only grows: in a rolling deploy the old code and the new one register in turn. A wider
// one joins again, as if it were new, for what it did not take before. One that is still joining keeps its beginning:
// it was served with nothing, or with what had ended by its snapshot, so that whatever is swept now comes in order.
// An ordered one that is active is served until this has committed: an event of the new part that ends before that may
// have later ones of its key delivered already. So its snapshot is left to be taken: see serve-on.ts.
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
         joined_snapshot = case when s.state = 'joining' then s.joined_snapshot
                                when s.lanes = 0 or s.engine = 'stream' then pg_current_snapshot() end,
         state = case s.engine when 'stream' then s.state else 'joining' end, barrier = null, swept_to = null, generation = s.generation + 1,
         updated_at = clock_timestamp()
   where s.name = $1 and s.state <> 'retired'
  returning ${SUBSCRIPTION_COLUMNS}`

// One that reads the log has nothing to join. First its progress is locked: what is recorded of it later, by whoever read
// for less, is refused, and what was recorded before is older than the snapshot from which on it takes more.
const advanceGenerationSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_stream t set generation = t.generation + 1, updated_at = clock_timestamp()
   where t.subscription_id = (select s.id from ${schema}.outbox_subscription s where s.name = $1 and s.state <> 'retired')
  returning 1`

/** Whether the definition takes anything that the subscription of its name does not take yet. */
export async function isWider(
  client: PgClient,
  schema: QuotedSchema,
  definition: SubscriptionDefinition,
): Promise<boolean> {
  const values = [definition.name, streamPatterns(definition.streams), definition.eventTypes]
  const [row] = await rawQuery(client, isWiderSql(schema), values)
  return row?.[0] === 't'
}

/**
 * Widens what a subscription takes, in a transaction that has the registry's lock. An ordered one that was active is
 * not served before `serveOn`, which comes after the commit.
 */
export async function widen(
  client: PgClient,
  schema: QuotedSchema,
  definition: SubscriptionDefinition,
): Promise<RegisteredSubscription> {
  const { name, streams, eventTypes } = definition
  await rawQuery(client, advanceGenerationSql(schema), [name])
  await announceRegistration(client, schema)
  const [row] = await rawQuery(client, widenSql(schema), [name, streams, streamPatterns(streams), eventTypes])
  return toSubscription(row as RawRow)
}
