import type { AmendRequest } from '../dead-letter-store.ts'
import { type PgPool, rawQuery, withTransaction } from './client.ts'
import { decided } from './close-dead-letter.ts'
import { deadLetterId } from './dead-letter-row.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'

const amendSql = (schema: QuotedSchema): string =>
  `select ${schema}.outbox_amend($1, $2::text::jsonb, $3, $4, $5, $6)`

/** Puts another event in the place of a dead one, in one transaction with the operator's record. */
export async function amendDeadLetter(
  pool: PgPool,
  schema: QuotedSchema,
  id: string,
  { eventId, payloadJson, schemaVersion, operator, note }: AmendRequest,
): Promise<void> {
  const values = [
    deadLetterId(id),
    payloadJson,
    operatorName(operator),
    operatorNote(note),
    schemaVersion,
    eventId,
  ]
  // READ COMMITTED, whatever the role's default: the fan-out refuses older snapshots.
  await decided(id, () => withTransaction(pool, (client) => rawQuery(client, amendSql(schema), values)))
}
