import { type PgPool, rawQuery, withClient } from './client.ts'
import { deadLetterRefusal } from './dead-letter-refusal.ts'
import { deadLetterId } from './dead-letter-row.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'

// A function of the database, because operators use it from SQL too and need no right on the tables behind it.
const resolveSql = (schema: QuotedSchema): string => `select ${schema}.outbox_resolve($1, $2, $3)`

/** Resolves a dead letter by hand: its delivery stays DEAD, and what waits behind it goes on. Recorded with the operator. */
export async function resolveDeadLetter(
  pool: PgPool,
  schema: QuotedSchema,
  id: string,
  operator: string,
  note: string | null,
): Promise<void> {
  const values = [deadLetterId(id), operatorName(operator), operatorNote(note)]
  try {
    await withClient(pool, (client) => rawQuery(client, resolveSql(schema), values))
  } catch (error) {
    throw deadLetterRefusal(error, id)
  }
}
