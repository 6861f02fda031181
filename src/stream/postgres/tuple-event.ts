import { defaultOrderingKey, type OutboxEvent } from '../../event/event.ts'
import { parseHeaders } from '../../event/stored-headers.ts'
import { RefusedError } from '../../runtime/refused-error.ts'
import { dateOfHalves } from '../../runtime/server-time.ts'
import type { LoggedEvent } from '../../store/stream-store.ts'
import { RepeatedText } from './repeated-text.ts'

const COLUMNS = [
  'event_id',
  'xid',
  'id',
  'stream',
  'event_type',
  'schema_version',
  'aggregate_type',
  'aggregate_id',
  'ordering_key',
  'sequence',
  'payload',
  'headers',
  'occurred_at',
  'created_at',
] as const

const EVENT_ID = 0
const XID = 1
const ID = 2
const STREAM = 3
const TYPE = 4
const VERSION = 5
const AGGREGATE_TYPE = 6
const AGGREGATE_ID = 7
const KEY = 8
const SEQUENCE = 9
const PAYLOAD = 10
const HEADERS = 11
const OCCURRED_AT = 12
const CREATED_AT = 13

/** Where the columns of an event stand in a row of the log. */
export interface TupleReader {
  /** By the place in the row: which of ours it is, or -1. */
  readonly wanted: Int8Array
  /** Scratch for one row: where each of our columns begins, and how long it is; -1 is null. */
  readonly starts: Int32Array
  readonly lengths: Int32Array
  /** Which row that is of. */
  readonly located: { row: Buffer | null; at: number }
  readonly streams: RepeatedText
  readonly types: RepeatedText
  readonly aggregateTypes: RepeatedText
}

/** Finds the columns of an event among those of a relation. */
export function tupleReader(columns: readonly string[]): TupleReader {
  const names: readonly string[] = COLUMNS
  const missing = names.filter((name) => !columns.includes(name))
  if (missing.length > 0) {
    const left = missing.join(', ')
    throw new RefusedError(
      'stream-columns-missing',
      `The publication leaves out columns of outbox_event: ${left}. ` +
        'Publish the whole table: alter publication … set table …outbox_event.',
      { data: { columns: left } },
    )
  }
  return {
    wanted: Int8Array.from(columns, (name) => names.indexOf(name)),
    starts: new Int32Array(COLUMNS.length),
    lengths: new Int32Array(COLUMNS.length),
    located: { row: null, at: 0 },
    streams: new RepeatedText(),
    types: new RepeatedText(),
    aggregateTypes: new RepeatedText(),
  }
}

const NULL = 0x6e
const UNCHANGED = 0x75
/** For the objects of an event in hand: about. */
const OVERHEAD_BYTES = 300

/**
 * An event from a row of the log in binary form. It stays as it came until its turn: ten thousand that wait as bytes cost
 * the garbage collector next to nothing, and as texts more than all else.
 */
export class TupleEvent implements LoggedEvent {
  /** Of its row. */
  readonly size: number
  readonly #reader: TupleReader
  #row: Buffer
  #at: number

  /** The row begins at `at`; the bytes must stay as they are. */
  constructor(reader: TupleReader, row: Buffer, at: number, size: number) {
    this.size = size
    this.#reader = reader
    this.#row = row
    this.#at = at
  }

  /** Its row is there from now on, and lets go of the bytes that it was in. */
  moveTo(bytes: Buffer, at: number): void {
    this.#row.copy(bytes, at, this.#at, this.#at + this.size)
    this.#row = bytes
    this.#at = at
  }

  get bytes(): number {
    return this.size + OVERHEAD_BYTES
  }

  get eventId(): string {
    return uuid(this.#row, startOf(this.#reader, this.#row, this.#at, EVENT_ID))
  }

  get position(): string {
    return String(integer(this.#row, startOf(this.#reader, this.#row, this.#at, ID)))
  }

  get xid(): number {
    return Number(integer(this.#row, startOf(this.#reader, this.#row, this.#at, XID)))
  }

  get stream(): string {
    const reader = locate(this.#reader, this.#row, this.#at)
    return repeated(reader.streams, reader, this.#row, STREAM)
  }

  get type(): string {
    const reader = locate(this.#reader, this.#row, this.#at)
    return repeated(reader.types, reader, this.#row, TYPE)
  }

  get createdAt(): Date {
    return time(this.#row, startOf(this.#reader, this.#row, this.#at, CREATED_AT))
  }

  get mayStandIn(): boolean {
    const { starts, lengths } = locate(this.#reader, this.#row, this.#at)
    if ((lengths[HEADERS] as number) <= LEAST_HEADERS_BYTES) return false
    const start = starts[HEADERS] as number
    return this.#row.subarray(start, start + (lengths[HEADERS] as number)).includes('"amendedFrom"')
  }

  get orderingKey(): string {
    const reader = locate(this.#reader, this.#row, this.#at)
    const row = this.#row
    return (
      ownKeyOf(reader, row) ??
      defaultOrderingKey(
        repeated(reader.aggregateTypes, reader, row, AGGREGATE_TYPE),
        text(reader, row, AGGREGATE_ID),
      )
    )
  }

  get event(): OutboxEvent {
    const row = this.#row
    const reader = locate(this.#reader, this.#row, this.#at)
    const { starts, lengths } = reader
    const aggregateType = repeated(reader.aggregateTypes, reader, row, AGGREGATE_TYPE)
    const aggregateId = text(reader, row, AGGREGATE_ID)
    return {
      eventId: uuid(row, starts[EVENT_ID] as number),
      position: String(integer(row, starts[ID] as number)),
      stream: repeated(reader.streams, reader, row, STREAM),
      type: repeated(reader.types, reader, row, TYPE),
      schemaVersion: int32(row, starts[VERSION] as number),
      aggregateType,
      aggregateId,
      orderingKey: ownKeyOf(reader, row) ?? defaultOrderingKey(aggregateType, aggregateId),
      sequence: lengths[SEQUENCE] === -1 ? null : Number(integer(row, starts[SEQUENCE] as number)),
      payload: JSON.parse(json(reader, row, PAYLOAD)) as unknown,
      headers: parseHeaders(
        (lengths[HEADERS] as number) <= LEAST_HEADERS_BYTES ? '{}' : json(reader, row, HEADERS),
      ),
      occurredAt: time(row, starts[OCCURRED_AT] as number),
      createdAt: time(row, starts[CREATED_AT] as number),
    }
  }
}

/** The version byte of jsonb, and two braces. */
const LEAST_HEADERS_BYTES = 3

function ownKeyOf(reader: TupleReader, row: Buffer): string | null {
  return reader.lengths[KEY] === -1 ? null : text(reader, row, KEY)
}

function startOf(reader: TupleReader, bytes: Buffer, at: number, column: number): number {
  return locate(reader, bytes, at).starts[column] as number
}

/** Notes where each of our columns is, unless that is what was noted last. */
function locate(reader: TupleReader, bytes: Buffer, at: number): TupleReader {
  if (reader.located.row === bytes && reader.located.at === at) return reader
  reader.located.row = bytes
  reader.located.at = at
  const { wanted, starts, lengths } = reader
  const count = ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
  let offset = at + 2
  for (let column = 0; column < count; column += 1) {
    const kind = bytes[offset]
    offset += 1
    const isAbsent = kind === NULL || kind === UNCHANGED
    const length = isAbsent ? -1 : int32(bytes, offset)
    if (!isAbsent) offset += 4
    const ours = wanted[column] as number
    if (ours >= 0) {
      starts[ours] = offset
      lengths[ours] = length
    }
    if (!isAbsent) offset += length
  }
  return reader
}

/** What `readInt32BE` reads, without its checks: it is called twenty times for an event. */
function int32(bytes: Buffer, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  )
}

function text({ starts, lengths }: TupleReader, bytes: Buffer, column: number): string {
  const start = starts[column] as number
  return bytes.toString('utf8', start, start + (lengths[column] as number))
}

function repeated(
  last: RepeatedText,
  { starts, lengths }: TupleReader,
  bytes: Buffer,
  column: number,
): string {
  const start = starts[column] as number
  return last.read(bytes, start, start + (lengths[column] as number))
}

/** Before the text of jsonb stands the version of its form. */
function json({ starts, lengths }: TupleReader, bytes: Buffer, column: number): string {
  const start = starts[column] as number
  return bytes.toString('utf8', start + 1, start + (lengths[column] as number))
}

const UPPER_HALF = 2 ** 32
/** The upper half of the largest number that JavaScript holds exactly. */
const SAFE_UPPER = 2 ** 21

function integer(bytes: Buffer, at: number): number | bigint {
  const upper = int32(bytes, at)
  if (upper < 0 || upper >= SAFE_UPPER) return bytes.readBigInt64BE(at)
  return upper * UPPER_HALF + (int32(bytes, at + 4) >>> 0)
}

function time(bytes: Buffer, at: number): Date {
  return dateOfHalves(int32(bytes, at), int32(bytes, at + 4) >>> 0)
}

const HEX_DIGITS = Buffer.from('0123456789abcdef')
const UUID_BYTES = 16
const DASH = 0x2d
const DASH_AFTER: ReadonlySet<number> = new Set([3, 5, 7, 9])
/** Where the two digits of each byte stand. */
const DIGITS_AT = uuidPlaces()
const uuidText = Buffer.alloc(UUID_BYTES * 2 + DASH_AFTER.size, DASH)

/** One text, not five of which a sixth is put together: every event has one. */
function uuid(bytes: Buffer, at: number): string {
  for (let index = 0; index < UUID_BYTES; index += 1) {
    const byte = bytes[at + index] as number
    const place = DIGITS_AT[index] as number
    uuidText[place] = HEX_DIGITS[byte >> 4] as number
    uuidText[place + 1] = HEX_DIGITS[byte & 15] as number
  }
  return uuidText.toString('latin1')
}

function uuidPlaces(): Uint8Array {
  const places = new Uint8Array(UUID_BYTES)
  let place = 0
  for (let index = 0; index < UUID_BYTES; index += 1) {
    places[index] = place
    place += DASH_AFTER.has(index) ? 3 : 2
  }
  return places
}
