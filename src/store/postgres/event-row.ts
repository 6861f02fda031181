import type { ClaimedDelivery, Lease } from '../../delivery/delivery.ts'
import type { EventHeaders, OutboxEvent } from '../../event/event.ts'
import type { RawRow } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

/** The columns `toEvent` maps, of a row of `outbox_event` called `e`. */
export const EVENT_COLUMNS = `e.event_id, e.stream, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id,
            coalesce(e.ordering_key, e.aggregate_type || ':' || e.aggregate_id), e.sequence, e.payload, e.headers,
            (extract(epoch from e.occurred_at) * 1000)::float8, (extract(epoch from e.created_at) * 1000)::float8`

/**
 * Turns the rows of a CTE `claimed` into claimed deliveries with their events.
 *
 * Lateral with OFFSET 0: one look-up by primary key per delivery whatever the planner believes about table sizes. A
 * join it may order freely did 100 rows a second once its plan had been made on an empty table.
 */
export const selectClaimed = (schema: QuotedSchema): string => `
  select c.lane, c.id, c.attempt_count, c.max_attempts, c.suspect, c.lease_token, c.was_held, e.*, c.ordering_key
    from claimed c
   cross join lateral (
     select ${EVENT_COLUMNS}
       from ${schema}.outbox_event e
      where e.event_id = c.event_id
      offset 0) e`

/** What every claim returns, besides the columns of the event. */
export const RETURNING_CLAIMED =
  'd.lane, d.id, d.event_id, d.attempt_count, d.max_attempts, d.suspect, d.lease_token, d.ordering_key'

/** The lease all rows of one claim share, or null when it took nothing. */
export function leaseOf(rows: readonly RawRow[], workerId: string): Lease | null {
  const [first] = rows
  return first === undefined ? null : { token: text(first, 5), workerId }
}

/** Maps one row of `selectClaimed`. Columns by number: this runs once for every event of the system. */
export function toClaimedDelivery(row: RawRow, subscriptionId: number, lease: Lease): ClaimedDelivery {
  const position = text(row, 1)
  return {
    subscriptionId,
    lane: Number(row[0]),
    position,
    lease,
    attempt: Number(row[2]),
    maxAttempts: Number(row[3]),
    suspect: row[4] === 't',
    event: toEvent(row, 7, position),
  }
}

/** True when the claimed row was held before: a retry, a suspect or one that was parked. */
export function wasHeld(row: RawRow): boolean {
  return row[6] === 't'
}

/** Maps EVENT_COLUMNS, the first of which stands at `first`. */
export function toEvent(row: RawRow, first: number, position: string): OutboxEvent {
  const sequence = row[first + 7]
  return {
    eventId: text(row, first),
    position,
    stream: text(row, first + 1),
    type: text(row, first + 2),
    schemaVersion: Number(row[first + 3]),
    aggregateType: text(row, first + 4),
    aggregateId: text(row, first + 5),
    orderingKey: text(row, first + 6),
    sequence: sequence === null || sequence === undefined ? null : Number(sequence),
    payload: JSON.parse(text(row, first + 8)) as unknown,
    headers: parseHeaders(text(row, first + 9)),
    occurredAt: new Date(Number(row[first + 10])),
    createdAt: new Date(Number(row[first + 11])),
  }
}

const NO_HEADERS: EventHeaders = Object.freeze({})

/** A plain INSERT may have put anything JSON can hold into the headers: what is not text becomes text. */
export function parseHeaders(json: string): EventHeaders {
  if (json === '{}') return NO_HEADERS
  const parsed = JSON.parse(json) as Record<string, unknown>
  for (const [name, value] of Object.entries(parsed)) {
    if (typeof value !== 'string') parsed[name] = JSON.stringify(value)
  }
  return parsed as EventHeaders
}

function text(row: RawRow, column: number): string {
  return row[column] as string
}
