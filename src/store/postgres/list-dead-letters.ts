import type { DeadLetter, DeadLetterQuery } from '../dead-letter-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import {
  DEAD_LETTER_FILTER,
  deadLetterId,
  FILTERS,
  filterValues,
  selectDeadLetters,
  toDeadLetter,
} from './dead-letter-row.ts'
import type { QuotedSchema } from './identifiers.ts'
import { pageSize } from './page-size.ts'

// Walks an index backwards: outbox_dead_letter_open where unresolved ones are asked for, else the primary key.
const listSql = (schema: QuotedSchema): string =>
  selectDeadLetters(
    schema,
    `select l.* from ${schema}.outbox_dead_letter l
      where ${DEAD_LETTER_FILTER}
        and ($${FILTERS + 1}::bigint is null or l.id < $${FILTERS + 1})
      order by l.id desc
      limit $${FILTERS + 2}`,
  )

/** One page of dead letters, newest first. The next page begins before the last id of this one. */
export async function listDeadLetters(
  pool: PgPool,
  schema: QuotedSchema,
  query: DeadLetterQuery,
): Promise<readonly DeadLetter[]> {
  const { before } = query
  const values = [
    ...filterValues(query),
    before === undefined ? null : deadLetterId(before),
    pageSize(query.limit),
  ]
  const rows = await withClient(pool, (client) => rawQuery(client, listSql(schema), values))
  return rows.map(toDeadLetter)
}
