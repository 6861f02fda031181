import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const countEventsSql = (schema: QuotedSchema): string => `select count(*) from ${schema}.outbox_event`

/** How many events the outbox holds. Counted, not estimated: it reads an index from end to end. */
export async function countEvents(pool: PgPool, schema: QuotedSchema): Promise<number> {
  const [row] = await withClient(pool, (client) => rawQuery(client, countEventsSql(schema), []))
  return Number(row?.[0])
}
