import type { OutboxEvent } from '../../event/event.ts'
import { NO_SUBSCRIPTION } from '../dead-letter-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { EVENT_COLUMNS, toEvent } from './event-row.ts'
import type { QuotedSchema } from './identifiers.ts'

// Walks outbox_unmatched_open. Skips what another worker is reporting at this moment: each event is reported once.
const takeUnmatchedSql = (schema: QuotedSchema): string => `
  with taken as (
    update ${schema}.outbox_unmatched u
       set reported_at = clock_timestamp()
     where u.event_id = any (array(
       select o.event_id from ${schema}.outbox_unmatched o
        where o.reported_at is null
        order by o.created_at
        limit $1
          for update skip locked))
    returning u.event_id, u.created_at
  ),
  letters as (
    insert into ${schema}.outbox_dead_letter (subscription, position, event_id, stream, event_type, schema_version,
           aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at, error_code, error_message,
           retry_count)
    select '${NO_SUBSCRIPTION}', e.id, e.event_id, e.stream, e.event_type, e.schema_version,
           e.aggregate_type, e.aggregate_id, e.ordering_key, e.payload, e.headers, e.occurred_at, 'NO_SUBSCRIPTION',
           'No subscription takes events of type ' || e.event_type || ' on stream ' || e.stream || '.', 0
      from taken t
     cross join lateral (select * from ${schema}.outbox_event e where e.event_id = t.event_id offset 0) e
     where $2::boolean
  )
  select e.id, ${EVENT_COLUMNS}
    from taken t
   cross join lateral (select * from ${schema}.outbox_event e where e.event_id = t.event_id offset 0) e
   order by t.created_at, t.event_id`

/** Takes events that no subscription matched and that were not reported before; with `deadLetter` sets them aside. */
export async function takeUnmatched(
  pool: PgPool,
  schema: QuotedSchema,
  limit: number,
  deadLetter: boolean,
): Promise<readonly OutboxEvent[]> {
  const values = [limit, deadLetter]
  const rows = await withClient(pool, (client) => rawQuery(client, takeUnmatchedSql(schema), values))
  return rows.map((row) => toEvent(row, 1, row[0] as string))
}
