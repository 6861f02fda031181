import type { RevealRecord } from '../dead-letter-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'

const recordSql = (schema: QuotedSchema): string => `
  insert into ${schema}.outbox_operator_log (operator, action, target, affected, note)
  values ($1, 'reveal', $2::jsonb, $3, $4)`

/** Writes down that somebody is shown what is hidden by default. */
export async function recordReveal(
  pool: PgPool,
  schema: QuotedSchema,
  { operator, note, target, affected }: RevealRecord,
): Promise<void> {
  const values = [operatorName(operator), JSON.stringify(target), affected, operatorNote(note)]
  await withClient(pool, (client) => rawQuery(client, recordSql(schema), values))
}
