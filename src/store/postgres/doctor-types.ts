import type { StoredType } from '../doctor-facts.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const LOOKED_AT = 10_000

// There is no index by type, and none is worth it: the newest deliveries, and what nobody took, tell enough.
const typesSql = (schema: QuotedSchema): string => `
  select t.stream, t.event_type, count(*) from (
    select e.stream, e.event_type
      from (select distinct d.event_id from (
              select d.event_id from ${schema}.outbox_delivery d order by d.id desc limit ${LOOKED_AT}) d) d
      join ${schema}.outbox_event e on e.event_id = d.event_id
    union all
    (select u.stream, u.event_type from ${schema}.outbox_unmatched u limit ${LOOKED_AT})) t
   group by t.stream, t.event_type
   order by 3 desc, 1, 2
   limit 1000`

/** The types of the newest events. */
export async function storedTypes(client: PgClient, schema: QuotedSchema): Promise<readonly StoredType[]> {
  const rows = await rawQuery(client, typesSql(schema), [])
  return rows.map(([stream, eventType, count]) => ({
    stream: stream as string,
    eventType: eventType as string,
    count: Number(count),
  }))
}
