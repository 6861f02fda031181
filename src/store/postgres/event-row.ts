import type { ClaimedDelivery, Lease } from '../../delivery/delivery.ts'
import { defaultOrderingKey, type OutboxEvent } from '../../event/event.ts'
import { parseHeaders } from '../../event/stored-headers.ts'
import type { LaneDelivery } from '../queue-store.ts'
import type { RawRow } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

/** The columns `toEvent` maps, of a row of `outbox_event` called `e`. */
export const EVENT_COLUMNS: string = `e.event_id, e.stream, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id,
            coalesce(e.ordering_key, e.aggregate_type || ':' || e.aggregate_id), e.sequence, e.payload, e.headers,
            ${timeColumn('e.occurred_at')}, ${timeColumn('e.created_at')}`

/** Stands between the parts of a claimed row. No text of an event may hold it, and JSON escapes it. */
const SEPARATOR = '\u001f'

/**
 * Turns the rows of a CTE `claimed` into claimed deliveries with their events, each as one text.
 *
 * One text because a driver spends more on every column than on all the characters of a row, and because what waits
 * in hand as one text costs the garbage collector a twentieth of what it costs as columns.
 *
 * Lateral with OFFSET 0: one look-up by primary key per delivery whatever the planner believes about table sizes. A
 * join it may order freely did 100 rows a second once its plan had been made on an empty table.
 */
export const selectClaimed = (schema: QuotedSchema): string => `
  select concat_ws(E'\\x1f', c.id, c.lane, c.attempt_count, c.max_attempts, c.suspect, c.was_held, c.lease_token,
                   coalesce(c.ordering_key, ''), e.packed) as packed
    from claimed c
   cross join lateral (
     select concat_ws(E'\\x1f', e.event_id, e.stream, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id,
                      coalesce('=' || e.ordering_key, ''), coalesce(e.sequence::text, ''),
                      ${timeColumn('e.occurred_at')}, ${timeColumn('e.created_at')}, e.headers,
                      e.payload) as packed
       from ${schema}.outbox_event e
      where e.event_id = c.event_id
      offset 0) e`

/** What every claim returns, besides the columns of the event. */
export const RETURNING_CLAIMED =
  'd.lane, d.id, d.event_id, d.attempt_count, d.max_attempts, d.suspect, d.lease_token, d.ordering_key'

const TOKEN = 6
const KEY = 7
const EVENT = 8

/** The deliveries of one claim, in position order; they share their lease. */
export function toDeliveries(
  rows: readonly RawRow[],
  subscriptionId: number,
  workerId: string,
): readonly LaneDelivery[] {
  const [first] = rows
  if (first === undefined) return []
  const token = text(first, 0).split(SEPARATOR, KEY)[TOKEN] as string
  const lease = { token, workerId }
  return rows.map((row) => new PackedDelivery(text(row, 0), subscriptionId, lease)).toSorted(byPosition)
}

/** RETURNING promises no order. Positions are 64-bit numbers kept as text: the longer is the larger. */
function byPosition(a: ClaimedDelivery, b: ClaimedDelivery): number {
  if (a.position.length !== b.position.length) return a.position.length - b.position.length
  return a.position < b.position ? -1 : Number(a.position > b.position)
}

/** A claimed delivery whose event is read when its turn comes: until then it is one text. */
class PackedDelivery implements LaneDelivery {
  readonly subscriptionId: number
  readonly lease: Lease
  readonly position: string
  readonly lane: number
  readonly attempt: number
  readonly maxAttempts: number
  readonly suspect: boolean
  readonly wasHeld: boolean
  readonly key: string
  readonly #packed: string
  #event: OutboxEvent | undefined

  constructor(packed: string, subscriptionId: number, lease: Lease) {
    const parts = packed.split(SEPARATOR, EVENT)
    this.subscriptionId = subscriptionId
    this.lease = lease
    this.position = parts[0] as string
    this.lane = Number(parts[1])
    this.attempt = Number(parts[2])
    this.maxAttempts = Number(parts[3])
    this.suspect = parts[4] === 't'
    this.wasHeld = parts[5] === 't'
    this.key = parts[KEY] as string
    this.#packed = packed
  }

  get event(): OutboxEvent {
    this.#event ??= unpackEvent(this.#packed, this.position)
    return this.#event
  }
}

function unpackEvent(packed: string, position: string): OutboxEvent {
  const parts = packed.split(SEPARATOR)
  const part = (index: number): string => parts[EVENT + index] as string
  const aggregateType = part(4)
  const aggregateId = part(5)
  const key = part(6)
  const sequence = part(7)
  return {
    eventId: part(0),
    position,
    stream: part(1),
    type: part(2),
    schemaVersion: Number(part(3)),
    aggregateType,
    aggregateId,
    orderingKey: key === '' ? defaultOrderingKey(aggregateType, aggregateId) : key.slice(1),
    sequence: sequence === '' ? null : Number(sequence),
    occurredAt: dateOf(part(8)),
    createdAt: dateOf(part(9)),
    headers: parseHeaders(part(10)),
    payload: JSON.parse(part(11)) as unknown,
  }
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
    occurredAt: dateOf(text(row, first + 10)),
    createdAt: dateOf(text(row, first + 11)),
  }
}

function text(row: RawRow, column: number): string {
  return row[column] as string
}
