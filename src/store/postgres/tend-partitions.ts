import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

/** One statement, for this code and for scripts. */
export const tendPartitionsSql = (schema: QuotedSchema): string => `select ${schema}.outbox_tend_partitions()`

/** Makes the partitions of the next periods where they are missing, and lets positions begin with the day. */
export async function tendPartitions(pool: PgPool, schema: QuotedSchema): Promise<number> {
  const [row] = await withClient(pool, (client) => rawQuery(client, tendPartitionsSql(schema), []))
  return Number(row?.[0])
}
