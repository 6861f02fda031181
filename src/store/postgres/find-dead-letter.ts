import type { DeadLetter } from '../dead-letter-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { deadLetterId, selectDeadLetters, toDeadLetter } from './dead-letter-row.ts'
import type { QuotedSchema } from './identifiers.ts'

const findSql = (schema: QuotedSchema): string =>
  selectDeadLetters(schema, `select l.* from ${schema}.outbox_dead_letter l where l.id = $1`)

/** One dead letter, or null. */
export async function findDeadLetter(
  pool: PgPool,
  schema: QuotedSchema,
  id: string,
): Promise<DeadLetter | null> {
  const values = [deadLetterId(id)]
  const [row] = await withClient(pool, (client) => rawQuery(client, findSql(schema), values))
  return row === undefined ? null : toDeadLetter(row)
}
