import type { DeliveryStatus } from '../../delivery/delivery.ts'
import type { ExportedDelivery, ExportedEvent } from '../export-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { EVENT_COLUMNS, toEvent } from './event-row.ts'
import type { QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

// A look-up by key for each event and each subscription, whatever the planner believes about the sizes of tables.
const exportedSql = (schema: QuotedSchema): string => `
  select e.id, a.amended_from, d.deliveries, ${EVENT_COLUMNS}
    from unnest($1::uuid[]) as wanted(event_id)
   cross join lateral (select * from ${schema}.outbox_event e where e.event_id = wanted.event_id offset 0) e
    left join ${schema}.outbox_amendment a on a.event_id = e.event_id
   cross join lateral (
     select jsonb_agg(jsonb_build_array(s.name, d.status, d.attempt_count, ${timeColumn('d.processed_at')})
                      order by s.name, s.id) as deliveries
       from ${schema}.outbox_subscription s
      cross join lateral (
        select d.status, d.attempt_count, d.processed_at from ${schema}.outbox_delivery d
         where d.subscription_id = s.id and d.id = e.id and d.event_id = e.event_id
           and d.lane = ${schema}.outbox_lane_of(
                 ${schema}.outbox_key_of(s.order_by, e.ordering_key, e.aggregate_type, e.aggregate_id), s.lanes)
        offset 0) d) d
   order by e.id, e.event_id`

/** These events with what became of them, in order of their positions. */
export async function readExported(
  pool: PgPool,
  schema: QuotedSchema,
  eventIds: readonly string[],
): Promise<readonly ExportedEvent[]> {
  const rows = await withClient(pool, (client) => rawQuery(client, exportedSql(schema), [[...eventIds]]))
  return rows.map((row) => ({
    event: toEvent(row, 3, row[0] as string),
    payloadJson: row[11] as string,
    headersJson: row[12] as string,
    amendedFrom: row[1] ?? null,
    deliveries: toDeliveries(row[2] ?? '[]'),
  }))
}

type PackedDelivery = readonly [string, DeliveryStatus, number, string | null]

function toDeliveries(json: string): readonly ExportedDelivery[] {
  return (JSON.parse(json) as readonly PackedDelivery[]).map(
    ([subscription, status, attempts, processed]) => ({
      subscription,
      status,
      attempts,
      processedAt: processed === null ? null : dateOf(processed),
    }),
  )
}
