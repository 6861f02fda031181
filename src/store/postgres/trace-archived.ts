import type { ArchivedEvent } from '../event-trace.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

const archivedSql = (schema: QuotedSchema): string => `
  select a.position, ${timeColumn('a.created_at')}, r.schema_name || '.' || r.table_name,
         to_json(array(select s.name from ${schema}.outbox_subscription s
                        where s.id = any (a.subscription_ids) order by s.name))
    from ${schema}.outbox_archived a
    left join ${schema}.outbox_archive r on r.id = a.archive_id
   where a.event_id = $1`

/** What the record of archived events says of one; null where it says nothing. */
export async function traceArchived(
  client: PgClient,
  schema: QuotedSchema,
  eventId: string,
): Promise<ArchivedEvent | null> {
  const [row] = await rawQuery(client, archivedSql(schema), [eventId])
  if (row === undefined) return null
  const [position, createdAt, archive, subscriptions] = row
  return {
    position: position as string,
    createdAt: dateOf(createdAt as string),
    archive: archive ?? null,
    subscriptions: JSON.parse(subscriptions as string) as readonly string[],
  }
}
