import type { JsonValue } from '../../event/event.ts'
import type { AttemptRecord, DeadLetter, DeadLetterQuery } from '../dead-letter-store.ts'
import type { RawRow } from './client.ts'
import { parseHeaders } from './event-row.ts'
import type { QuotedSchema } from './identifiers.ts'
import { rowId } from './row-id.ts'
import { dateOf, timeColumn } from './time-column.ts'

const COLUMNS = `l.id, l.subscription, l.event_id, l.position, l.stream, l.event_type,
         l.schema_version, l.aggregate_type, l.aggregate_id, l.ordering_key, l.payload, l.headers,
         ${timeColumn('l.occurred_at')}, l.error_code, l.error_message, l.attempt_history,
         l.retry_count, ${timeColumn('l.failed_at')}, l.resolved,
         ${timeColumn('l.resolved_at')}, l.resolved_by, l.note, o.action`

/**
 * The columns `toDeadLetter` maps, for the dead letters that `page` selects, newest first. The page is cut before the
 * operator's log is looked at: that is read once for all of it.
 */
export const selectDeadLetters = (schema: QuotedSchema, page: string): string => `
  with l as materialized (${page})
  select ${COLUMNS}
    from l
    left join ${schema}.outbox_operator_log o
      on l.resolved and o.action in ('retry', 'resolve') and o.target ->> 'deadLetter' = l.id::text
   order by l.id desc`

// Parameters are known when the statement is planned: a filter that is null falls away, the others may use an index.
/** The filters of a query, over a row called `l`, as parameters 1 to 4. */
export const DEAD_LETTER_FILTER = `($1::text is null or l.subscription = $1)
     and ($2::text is null or l.event_type = $2)
     and ($3::text is null or l.error_code = $3)
     and ($4::boolean is null or l.resolved = $4)`

/** The values of DEAD_LETTER_FILTER. */
export function filterValues(query: DeadLetterQuery): readonly unknown[] {
  const { subscription = null, eventType = null, errorCode = null, resolved = false } = query
  return [subscription, eventType, errorCode, resolved]
}

/** Maps a row of `selectDeadLetters`. */
export function toDeadLetter(row: RawRow): DeadLetter {
  const text = (column: number): string => row[column] as string
  const optional = (column: number): string | null => row[column] ?? null
  const resolvedAt = optional(19)
  return {
    id: text(0),
    subscription: text(1),
    eventId: text(2),
    position: text(3),
    stream: text(4),
    eventType: text(5),
    schemaVersion: Number(text(6)),
    aggregateType: text(7),
    aggregateId: text(8),
    orderingKey: optional(9),
    payload: JSON.parse(text(10)) as JsonValue,
    headers: parseHeaders(text(11)),
    occurredAt: dateOf(text(12)),
    errorCode: text(13),
    errorMessage: text(14),
    attemptHistory: JSON.parse(text(15)) as readonly AttemptRecord[],
    retryCount: Number(text(16)),
    failedAt: dateOf(text(17)),
    resolved: text(18) === 't',
    resolution: optional(22) as DeadLetter['resolution'],
    resolvedAt: resolvedAt === null ? null : dateOf(resolvedAt),
    resolvedBy: optional(20),
    note: optional(21),
  }
}

/** Checks the text of a dead letter's id before it reaches the database. */
export function deadLetterId(id: string): string {
  return rowId('dead letter', id)
}
