import { NotFoundError } from '../../runtime/errors.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { deadLetterId } from './dead-letter-row.ts'
import { driverErrorOf } from './driver-error.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'
import { refusal } from './refusal.ts'

/** What is done with a dead letter: delivered again, or left dead so that what waits behind it goes on. */
export type DeadLetterAct = 'retry' | 'resolve'

// Functions of the database, because operators use them from SQL too and need no right on the tables behind them.
const closeSql = (schema: QuotedSchema, act: DeadLetterAct): string =>
  `select ${schema}.outbox_${act}($1, $2, $3)`

/** Closes a dead letter in one transaction with the operator's record. */
export async function closeDeadLetter(
  pool: PgPool,
  schema: QuotedSchema,
  act: DeadLetterAct,
  id: string,
  operator: string,
  note: string | null,
): Promise<void> {
  const values = [deadLetterId(id), operatorName(operator), operatorNote(note)]
  await decided(id, () => withClient(pool, (client) => rawQuery(client, closeSql(schema, act), values)))
}

/** Runs a decision on a dead letter; what the database's functions refuse comes as the library's own errors. */
export async function decided(id: string, act: () => Promise<unknown>): Promise<void> {
  try {
    await act()
  } catch (error) {
    throw refusalOf(error, id)
  }
}

function refusalOf(error: unknown, id: string): unknown {
  const refused = driverErrorOf(error)
  if (refused?.code === 'P0002') return new NotFoundError('dead letter', id, { cause: error })
  return refusal(error)
}
