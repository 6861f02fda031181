import { type PgClient, rawQuery } from './client.ts'
import { type QuotedSchema, sequenceName } from './identifiers.ts'

const announceSql = (schema: QuotedSchema): string =>
  `select setval(${sequenceName(schema, 'outbox_registry_xid')}, pg_current_xact_id()::text::bigint)`

/**
 * A publisher with an older snapshot cannot see what this transaction registers. It can see this number, because a
 * sequence is read as it is and not as it was; outbox_fan_out turns it away.
 */
export async function announceRegistration(client: PgClient, schema: QuotedSchema): Promise<void> {
  await rawQuery(client, announceSql(schema), [])
}
