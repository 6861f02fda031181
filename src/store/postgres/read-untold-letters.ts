import type { JsonValue } from '../../event/event.ts'
import type { UntoldLetter, UntoldLetters } from '../alert-store.ts'
import { NO_SUBSCRIPTION } from '../dead-letter-store.ts'
import type { PgPool, RawRow } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { readBounded } from './read-bounded.ts'
import { dateOf, timeColumn } from './time-column.ts'

const UNTOLD = 'l.told_at is null and not l.resolved'

const untoldSql = (schema: QuotedSchema): string => `
  select l.id, l.subscription, l.event_id, l.stream, l.event_type, l.aggregate_type, l.aggregate_id, l.error_code,
         l.error_message, l.retry_count, ${timeColumn('l.failed_at')}, l.payload, l.headers,
         case when l.subscription = '${NO_SUBSCRIPTION}' then 'unmatched'
              when exists (select from ${schema}.outbox_subscription s
                            where s.id = l.subscription_id and s.state = 'retired') then 'retired' end
    from ${schema}.outbox_dead_letter l where ${UNTOLD} order by l.id limit $1`

const groupedSql = (schema: QuotedSchema): string => `
  select l.subscription, l.event_type, l.error_code, count(*), json_agg(l.id::text)
    from (select l.id, l.subscription, l.event_type, l.error_code
            from ${schema}.outbox_dead_letter l where ${UNTOLD} order by l.id limit $1) l
   group by 1, 2, 3
   order by 4 desc, 1, 2, 3`

/** The rest are told of by the next look. */
const MOST_TOGETHER = 10_000

/** The dead letters nobody was told of, oldest first: one by one, or in groups where there are more than that. */
export async function readUntoldLetters(
  pool: PgPool,
  schema: QuotedSchema,
  mostApart: number,
): Promise<UntoldLetters> {
  const rows = await readBounded(pool, untoldSql(schema), [mostApart + 1])
  if (rows.length <= mostApart) {
    const letters = rows.map(toLetter)
    return { ids: letters.map(({ id }) => id), letters, groups: [] }
  }
  const groups = await readBounded(pool, groupedSql(schema), [MOST_TOGETHER])
  return {
    ids: groups.flatMap((row) => JSON.parse(row[4] as string) as string[]),
    letters: [],
    groups: groups.map(([subscription, eventType, errorCode, count]) => ({
      subscription: subscription as string,
      eventType: eventType as string,
      errorCode: errorCode as string,
      count: Number(count),
    })),
  }
}

function toLetter(row: RawRow): UntoldLetter {
  const text = (column: number): string => row[column] as string
  return {
    id: text(0),
    subscription: text(1),
    eventId: text(2),
    stream: text(3),
    eventType: text(4),
    aggregateType: text(5),
    aggregateId: text(6),
    errorCode: text(7),
    errorMessage: text(8),
    retryCount: Number(row[9]),
    failedAt: dateOf(text(10)),
    undeliverable: (row[13] ?? null) as UntoldLetter['undeliverable'],
    payload: JSON.parse(text(11)) as JsonValue,
    headers: JSON.parse(text(12)) as Record<string, string>,
  }
}
