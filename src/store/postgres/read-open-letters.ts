import type { OpenLetters } from '../alert-store.ts'
import type { PgPool } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { readBounded } from './read-bounded.ts'
import { dateOf, timeColumn } from './time-column.ts'

// The oldest come first in outbox_dead_letter_open.
const openLettersSql = (schema: QuotedSchema): string => `
  select l.event_type, count(*), sum(count(*)) over ()
    from (select o.id, o.event_type from ${schema}.outbox_dead_letter o
           where not o.resolved order by o.id limit $1) l
   group by l.event_type
   order by 2 desc, 1`

const oldestSql = (schema: QuotedSchema): string => `
  select l.id, l.event_type, l.subscription, ${timeColumn('l.failed_at')}
    from ${schema}.outbox_dead_letter l where not l.resolved order by l.id limit 1`

/** The dead letters that wait for a person: how many, of which types, and the oldest. */
export async function readOpenLetters(
  pool: PgPool,
  schema: QuotedSchema,
  most: number,
): Promise<OpenLetters> {
  const types = await readBounded(pool, openLettersSql(schema), [most])
  const [oldest] = types.length === 0 ? [] : await readBounded(pool, oldestSql(schema), [])
  return {
    count: Number(types[0]?.[2] ?? 0),
    byType: types.map(([eventType, count]) => ({ eventType: eventType as string, count: Number(count) })),
    oldest:
      oldest === undefined
        ? null
        : {
            id: oldest[0] as string,
            eventType: oldest[1] as string,
            subscription: oldest[2] as string,
            failedAt: dateOf(oldest[3] as string),
          },
  }
}
