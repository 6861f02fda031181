import { type PgPool, rawQuery, withClient } from './client.ts'
import { deadLetterRefusal } from './dead-letter-refusal.ts'
import { deadLetterId } from './dead-letter-row.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'

// A function of the database, because operators use it from SQL too and need no right on the tables behind it.
const retrySql = (schema: QuotedSchema): string => `select ${schema}.outbox_retry($1, $2, $3)`

/** Sends a dead delivery on its way again and resolves its dead letter, in one transaction with the operator's record. */
export async function retryDeadLetter(
  pool: PgPool,
  schema: QuotedSchema,
  id: string,
  operator: string,
  note: string | null,
): Promise<void> {
  const values = [deadLetterId(id), operatorName(operator), operatorNote(note)]
  try {
    await withClient(pool, (client) => rawQuery(client, retrySql(schema), values))
  } catch (error) {
    throw deadLetterRefusal(error, id)
  }
}
