import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// Where the tables are partitioned a position has the day in front, which is no number of events.
const positionSql = (schema: QuotedSchema): string =>
  `select case when is_called then last_value % 10000000000 else 0 end from ${schema}.outbox_event_id_seq`

/**
 * Where the numbers of events have come to: how many were ever published, with those that were rolled back. It begins
 * anew with every period of partitioned tables.
 */
export async function readPosition(pool: PgPool, schema: QuotedSchema): Promise<number> {
  const [row] = await withClient(pool, (client) => rawQuery(client, positionSql(schema), []))
  return Number(row?.[0])
}
