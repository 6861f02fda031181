import type { JsonValue } from '../../event/event.ts'
import { parseHeaders } from '../../event/stored-headers.ts'
import type { AttemptRecord, DeadLetter, DeadLetterFilter } from '../dead-letter-store.ts'
import type { RawRow } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { redriveAtOf, redriveColumn } from './redrive-at.ts'
import { rowId } from './row-id.ts'
import { dateOf, timeColumn } from './time-column.ts'

const COLUMNS = `l.id, l.subscription, l.event_id, l.position, l.stream, l.event_type,
         l.schema_version, l.aggregate_type, l.aggregate_id, l.ordering_key, l.payload, l.headers,
         ${timeColumn('l.occurred_at')}, l.error_code, l.error_message, l.attempt_history,
         l.retry_count, ${timeColumn('l.failed_at')}, l.resolved,
         ${timeColumn('l.resolved_at')}, l.resolved_by, l.note, o.action, l.reason, l.fingerprint,
         ${redriveColumn('l')}`

/**
 * The columns `toDeadLetter` maps, for the dead letters that `page` selects, newest first. The page is cut before the
 * operator's log is looked at.
 */
export const selectDeadLetters = (schema: QuotedSchema, page: string): string => `
  with l as materialized (${page})
  select ${COLUMNS}
    from l
    left join ${schema}.outbox_operator_log o
      on l.resolved and o.action in ('retry', 'resolve', 'amend') and o.target ->> 'deadLetter' = l.id::text
   order by l.id desc`

const EQUAL = [
  ['subscription', 'subscription'],
  ['stream', 'stream'],
  ['eventType', 'event_type'],
  ['reason', 'reason'],
  ['errorCode', 'error_code'],
  ['fingerprint', 'fingerprint'],
  ['aggregateType', 'aggregate_type'],
  ['aggregateId', 'aggregate_id'],
] as const

// Parameters are known when the statement is planned: a filter that is null falls away, the others may use an index.
/** The filters of a query, over a row called `l`, as parameters 1 to FILTERS. */
export const DEAD_LETTER_FILTER: string = [
  ...EQUAL.map(([, column], index) => `($${index + 1}::text is null or l.${column} = $${index + 1})`),
  '($9::boolean is null or l.resolved = $9)',
  '($10::timestamptz is null or l.failed_at >= $10)',
  '($11::timestamptz is null or l.failed_at < $11)',
  '($12::text is null or strpos(lower(l.error_message), lower($12)) > 0)',
].join('\n       and ')

/** How many parameters DEAD_LETTER_FILTER takes: a statement's own come after them. */
export const FILTERS = 12

/** The values of DEAD_LETTER_FILTER. */
export function filterValues(filter: DeadLetterFilter): readonly unknown[] {
  const { resolved = false, failedFrom, failedTo, text = null } = filter
  return [
    ...EQUAL.map(([name]) => filter[name] ?? null),
    resolved,
    failedFrom?.toISOString() ?? null,
    failedTo?.toISOString() ?? null,
    text,
  ]
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
    reason: text(23) as DeadLetter['reason'],
    fingerprint: text(24),
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
    redriveAt: redriveAtOf(row[25]),
  }
}

/** Checks the text of a dead letter's id before it reaches the database. */
export function deadLetterId(id: string): string {
  return rowId('dead letter', id)
}
