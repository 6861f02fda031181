import type { EventIdentity } from '../../event/event.ts'
import { parseHeaders } from '../../event/stored-headers.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const identitySql = (schema: QuotedSchema): string => `
  select e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.headers
    from ${schema}.outbox_event e where e.event_id = $1`

/** What names an event, without its payload; null where there is none with this id. */
export async function identifyEvent(
  pool: PgPool,
  schema: QuotedSchema,
  eventId: string,
): Promise<EventIdentity | null> {
  const rows = await withClient(pool, (client) => rawQuery(client, identitySql(schema), [eventId]))
  const [row] = rows as readonly (readonly string[])[]
  if (row === undefined) return null
  const [stream = '', type = '', aggregateType = '', aggregateId = '', headers = '{}'] = row
  return { eventId, stream, type, aggregateType, aggregateId, headers: parseHeaders(headers) }
}
