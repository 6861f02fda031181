import type { PurgeRequest } from '../dead-letter-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'

/** Small enough that nobody waits for it. */
const BATCH = 1_000

const purgeSql = (schema: QuotedSchema): string =>
  `select ${schema}.outbox_purge($1::float8 * interval '1 millisecond', $2, $3, $4, $5)`

/** Removes resolved dead letters by age. Each batch is one transaction with the operator's record. */
export async function purgeDeadLetters(
  pool: PgPool,
  schema: QuotedSchema,
  { olderThanMs, subscription, operator, note }: PurgeRequest,
): Promise<number> {
  const values = [olderThanMs, operatorName(operator), operatorNote(note), subscription, BATCH]
  let purged = 0
  for (;;) {
    const [row] = await withClient(pool, (client) => rawQuery(client, purgeSql(schema), values))
    const batch = Number(row?.[0])
    purged += batch
    if (batch < BATCH) return purged
  }
}
