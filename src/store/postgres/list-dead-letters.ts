import { InvalidOptionsError } from '../../runtime/errors.ts'
import type { DeadLetter, DeadLetterQuery } from '../dead-letter-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import {
  DEAD_LETTER_FILTER,
  deadLetterId,
  filterValues,
  selectDeadLetters,
  toDeadLetter,
} from './dead-letter-row.ts'
import type { QuotedSchema } from './identifiers.ts'

// Walks an index backwards: outbox_dead_letter_open where unresolved ones are asked for, else the primary key.
const listSql = (schema: QuotedSchema): string =>
  selectDeadLetters(
    schema,
    `select l.* from ${schema}.outbox_dead_letter l
      where ${DEAD_LETTER_FILTER}
        and ($5::bigint is null or l.id < $5)
      order by l.id desc
      limit $6`,
  )

const DEFAULT_LIMIT = 50
const MOST = 1_000

/** One page of dead letters, newest first. The next page begins before the last id of this one. */
export async function listDeadLetters(
  pool: PgPool,
  schema: QuotedSchema,
  query: DeadLetterQuery,
): Promise<readonly DeadLetter[]> {
  const { before, limit = DEFAULT_LIMIT } = query
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST) {
    throw new InvalidOptionsError('the list of dead letters', [
      `limit must be a whole number from 1 to ${MOST}, but is ${limit}`,
    ])
  }
  const values = [...filterValues(query), before === undefined ? null : deadLetterId(before), limit]
  const rows = await withClient(pool, (client) => rawQuery(client, listSql(schema), values))
  return rows.map(toDeadLetter)
}
