import type { DeadLetterFilter } from '../dead-letter-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { DEAD_LETTER_FILTER, filterValues } from './dead-letter-row.ts'
import type { QuotedSchema } from './identifiers.ts'

const countSql = (schema: QuotedSchema): string => `
  select count(*) from ${schema}.outbox_dead_letter l where ${DEAD_LETTER_FILTER}`

/** How many dead letters a query finds on all its pages. */
export async function countDeadLetters(
  pool: PgPool,
  schema: QuotedSchema,
  filter: DeadLetterFilter,
): Promise<number> {
  const [row] = await withClient(pool, (client) => rawQuery(client, countSql(schema), filterValues(filter)))
  return Number(row?.[0])
}
