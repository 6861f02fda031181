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

// Of a delivery `d` as a claim updates it. `marks` is an SQL expression: one letter for each of `MARKS` that is true of it.
const deliveryParts = (marks: string): string =>
  `d.id, d.lane, d.attempt_count, d.max_attempts, ${marks}, d.lease_token, coalesce(d.ordering_key, '')`

const EVENT_PARTS = `e.event_id, e.stream, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id,
                       coalesce('=' || e.ordering_key, ''), coalesce(e.sequence::text, ''),
                       ${timeColumn('e.occurred_at')}, ${timeColumn('e.created_at')}, e.headers, e.payload`

/**
 * What a claim returns of each row `d` that it updates: the delivery with its event, as one text called `packed`. It is null
 * for a delivery whose event is not there.
 *
 * One text because a driver spends more on every column than on all the characters of a row, and because what waits
 * in hand as one text costs the garbage collector a twentieth of what it costs as columns. Returned by the UPDATE itself:
 * for a few rows that is the least.
 *
 * A scalar sub-select is one look-up by primary key per delivery whatever the planner believes about table sizes. A
 * join it may order freely did 100 rows a second once its plan had been made on an empty table.
 */
export const packedDelivery = (schema: QuotedSchema, marks: string): string => `(
      select concat_ws(E'\\x1f', ${deliveryParts(marks)},
                       ${EVENT_PARTS})
        from ${schema}.outbox_event e
       where e.event_id = d.event_id) as packed`

/** What the UPDATE of a claim of many returns of each row, in a CTE called `changed`. */
export const changedDelivery = (marks: string): string =>
  `d.event_id, concat_ws(E'\\x1f', ${deliveryParts(marks)}) as packed`

/**
 * All that is in a CTE `changed`: the deliveries as one text, and each of their events. `joinEvents` puts them together.
 *
 * The events of a claim stand side by side in their primary key. Asked for together they are read from it one after the
 * other; one by one each is looked up from the root, which took a claim of a thousand about a tenth of its time. A list of
 * keys leaves the planner no join to order either. The least and the greatest of them name the partitions to look in: a list
 * that is not known before is looked for in all of them.
 */
export const changedWithEvents = (schema: QuotedSchema): string => `
  select string_agg(c.packed, E'\\x1f'), null from changed c
  union all
  select null, concat_ws(E'\\x1f', e.id, ${EVENT_PARTS})
    from ${schema}.outbox_event e
   where e.event_id = any (array(select c.event_id from changed c))
     and e.event_id >= (select c.event_id from changed c order by c.event_id limit 1)
     and e.event_id <= (select c.event_id from changed c order by c.event_id desc limit 1)`

/** What may be said of a claimed delivery, by the letters that say so. */
export const MARKS = { none: '', held: 'h', suspect: 'hs' } as const

const TOKEN = 5

/** The deliveries of one claim, in position order; they share their lease. */
export function toDeliveries(
  rows: readonly RawRow[],
  subscriptionId: number,
  workerId: string,
): readonly LaneDelivery[] {
  const texts = rows.flatMap(([packed]) => (typeof packed === 'string' ? [packed] : []))
  const [first] = texts
  if (first === undefined) return []
  const lease = leaseOf(first, workerId)
  return texts
    .map((packed) => {
      const parts = new Parts(packed)
      return new PackedDelivery(parts, parts, subscriptionId, lease)
    })
    .toSorted(byPosition)
}

/** The same of what `changedWithEvents` returned. A delivery whose event is not there is left out. */
export function joinEvents(
  rows: readonly RawRow[],
  subscriptionId: number,
  workerId: string,
): readonly LaneDelivery[] {
  const packed = rows.find(([deliveries]) => typeof deliveries === 'string')?.[0] ?? ''
  if (packed === '') return []
  const lease = leaseOf(packed, workerId)
  const events = new Map<string, Parts>()
  for (const [, event] of rows) {
    if (typeof event !== 'string') continue
    const parts = new Parts(event)
    // An event has the position of its delivery, also one that stands in for another.
    events.set(parts.next(), parts)
  }
  const deliveries: PackedDelivery[] = []
  for (const parts = new Parts(packed); parts.at < packed.length; ) {
    const event = events.get(new Parts(packed, parts.at).next())
    const delivery = new PackedDelivery(parts, event ?? parts, subscriptionId, lease)
    if (event !== undefined) deliveries.push(delivery)
  }
  return deliveries.toSorted(byPosition)
}

function leaseOf(packed: string, workerId: string): Lease {
  return { token: packed.split(SEPARATOR, TOKEN + 1)[TOKEN] as string, workerId }
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
  /** Where the event begins in the text. */
  readonly #eventAt: number
  #event: OutboxEvent | undefined

  /** The event is what is left of `event` once the delivery was read from `parts`; the two may be one text. */
  constructor(parts: Parts, event: Parts, subscriptionId: number, lease: Lease) {
    this.subscriptionId = subscriptionId
    this.lease = lease
    this.position = parts.next()
    this.lane = Number(parts.next())
    this.attempt = Number(parts.next())
    this.maxAttempts = Number(parts.next())
    const marks = parts.next()
    this.suspect = marks === MARKS.suspect
    this.wasHeld = marks !== MARKS.none
    parts.skip()
    this.key = parts.next()
    this.#packed = event.packed
    this.#eventAt = event.at
  }

  get event(): OutboxEvent {
    this.#event ??= unpackEvent(new Parts(this.#packed, this.#eventAt), this.position)
    return this.#event
  }

  get characters(): number {
    return this.#packed.length
  }

  letGoOfEvent(): void {
    this.#event = undefined
  }
}

/** The parts of a text, one after the other: an array of all of them would be thrown away at once. */
class Parts {
  readonly packed: string
  /** Where the next one begins. */
  at: number

  constructor(packed: string, at = 0) {
    this.packed = packed
    this.at = at
  }

  next(): string {
    const from = this.at
    this.skip()
    return this.packed.slice(from, this.at - 1)
  }

  skip(): void {
    const end = this.packed.indexOf(SEPARATOR, this.at)
    this.at = (end < 0 ? this.packed.length : end) + 1
  }
}

function unpackEvent(parts: Parts, position: string): OutboxEvent {
  const eventId = parts.next()
  const stream = parts.next()
  const type = parts.next()
  const schemaVersion = Number(parts.next())
  const aggregateType = parts.next()
  const aggregateId = parts.next()
  const key = parts.next()
  const sequence = parts.next()
  const occurredAt = dateOf(parts.next())
  const createdAt = dateOf(parts.next())
  const headers = parseHeaders(parts.next())
  const payload = JSON.parse(parts.next()) as unknown
  return {
    eventId,
    position,
    stream,
    type,
    schemaVersion,
    aggregateType,
    aggregateId,
    orderingKey: key === '' ? defaultOrderingKey(aggregateType, aggregateId) : key.slice(1),
    sequence: sequence === '' ? null : Number(sequence),
    occurredAt,
    createdAt,
    headers,
    payload,
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
