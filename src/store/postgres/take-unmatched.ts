import type { UnmatchedEvent } from '../subscription-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const takeUnmatchedSql = (schema: QuotedSchema): string => `
  with taken as (
    update ${schema}.outbox_unmatched u
       set reported_at = clock_timestamp()
     where u.ctid = any (array(
       select o.ctid from ${schema}.outbox_unmatched o
        where o.reported_at is null order by o.created_at limit $1 for update skip locked))
    returning u.event_id, u.stream, u.event_type
  ),
  letters as (
    insert into ${schema}.outbox_dead_letter (subscription, position, event_id, stream, event_type, schema_version,
           aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at, error_code, error_message,
           retry_count)
    select '(none)', e.id, e.event_id, e.stream, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id,
           e.ordering_key, e.payload, e.headers, e.occurred_at, 'NO_SUBSCRIPTION',
           'no subscription takes this event', 0
      from taken t
     cross join lateral (select * from ${schema}.outbox_event e where e.event_id = t.event_id offset 0) e
     where $2::boolean
    returning 1
  )
  select event_id, stream, event_type from taken`

/** Takes unreported events that nobody wanted, each once over all workers; dead-letters them if asked to. */
export async function takeUnmatched(
  pool: PgPool,
  schema: QuotedSchema,
  limit: number,
  deadLetter: boolean,
): Promise<readonly UnmatchedEvent[]> {
  const rows = await withClient(pool, (client) => rawQuery(client, takeUnmatchedSql(schema), [limit, deadLetter]))
  return rows.map(([eventId, stream, eventType]) => ({
    eventId: eventId as string,
    stream: stream as string,
    eventType: eventType as string,
  }))
}
