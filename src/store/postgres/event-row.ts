import type { ClaimedDelivery, Lease } from '../../delivery/delivery.ts'
import type { EventHeaders, OutboxEvent } from '../../event/event.ts'
import type { RawRow } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

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
     select e.event_id, e.stream, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id,
            coalesce(e.ordering_key, e.aggregate_type || ':' || e.aggregate_id), e.sequence, e.payload, e.headers,
            (extract(epoch from e.occurred_at) * 1000)::float8, (extract(epoch from e.created_at) * 1000)::float8
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
  return {
    subscriptionId,
    lane: Number(row[0]),
    position: text(row, 1),
    lease,
    attempt: Number(row[2]),
    maxAttempts: Number(row[3]),
    suspect: row[4] === 't',
    event: toEvent(row),
  }
}

/** True when the claimed row was held before: a retry, a suspect or one that was parked. */
export function wasHeld(row: RawRow): boolean {
  return row[6] === 't'
}

function toEvent(row: RawRow): OutboxEvent {
  const sequence = row[14]
  return {
    eventId: text(row, 7),
    position: text(row, 1),
    stream: text(row, 8),
    type: text(row, 9),
    schemaVersion: Number(row[10]),
    aggregateType: text(row, 11),
    aggregateId: text(row, 12),
    orderingKey: text(row, 13),
    sequence: sequence === null || sequence === undefined ? null : Number(sequence),
    payload: JSON.parse(text(row, 15)) as unknown,
    headers: parseHeaders(text(row, 16)),
    occurredAt: new Date(Number(row[17])),
    createdAt: new Date(Number(row[18])),
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
