import { defaultOrderingKey, type OutboxEvent } from '../../event/event.ts'
import { parseHeaders } from '../../event/stored-headers.ts'
import { CommitpostError } from '../../runtime/errors.ts'
import { dateOfHalves } from '../../runtime/server-time.ts'
import type { LoggedEvent } from '../../store/stream-store.ts'

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
}

/** Finds the columns of an event among those of a relation. */
export function tupleReader(columns: readonly string[]): TupleReader {
  const names: readonly string[] = COLUMNS
  const missing = names.filter((name) => !columns.includes(name))
  if (missing.length > 0) {
    throw new CommitpostError(
      'STREAM_UNAVAILABLE',
      `The publication leaves out columns of outbox_event: ${missing.join(', ')}. ` +
        'Publish the whole table: alter publication … set table …outbox_event.',
    )
  }
  return {
    wanted: Int8Array.from(columns, (name) => names.indexOf(name)),
    starts: new Int32Array(COLUMNS.length),
    lengths: new Int32Array(COLUMNS.length),
  }
}

const NULL = 0x6e
const UNCHANGED = 0x75
/** Before every row, and for its objects: about. */
const OVERHEAD_BYTES = 400

/** An event from a row of the log in binary form. Texts are taken at once, because the bytes are used again. */
export class TupleEvent implements LoggedEvent {
  readonly position: string
  readonly xid: number
  readonly stream: string
  readonly type: string
  readonly createdAt: Date
  readonly bytes: number
  readonly eventId: string
  readonly mayStandIn: boolean
  readonly #version: number
  readonly #aggregateType: string
  readonly #aggregateId: string
  readonly #key: string | null
  readonly #sequence: number | null
  readonly #payload: string
  readonly #headers: string
  readonly #occurredAt: Date
  #event: OutboxEvent | undefined

  constructor(reader: TupleReader, bytes: Buffer, at: number) {
    const end = locate(reader, bytes, at)
    const { starts, lengths } = reader
    this.bytes = end - at + OVERHEAD_BYTES
    this.position = String(integer(bytes, starts[ID] as number))
    this.xid = Number(integer(bytes, starts[XID] as number))
    this.stream = text(reader, bytes, STREAM)
    this.type = text(reader, bytes, TYPE)
    this.createdAt = time(bytes, starts[CREATED_AT] as number)
    this.eventId = uuid(bytes, starts[EVENT_ID] as number)
    this.#version = bytes.readInt32BE(starts[VERSION] as number)
    this.#aggregateType = text(reader, bytes, AGGREGATE_TYPE)
    this.#aggregateId = text(reader, bytes, AGGREGATE_ID)
    this.#key = lengths[KEY] === -1 ? null : text(reader, bytes, KEY)
    this.#sequence = lengths[SEQUENCE] === -1 ? null : Number(integer(bytes, starts[SEQUENCE] as number))
    this.#payload = json(reader, bytes, PAYLOAD)
    this.#headers = json(reader, bytes, HEADERS)
    this.mayStandIn = this.#headers.includes('"amendedFrom"')
    this.#occurredAt = time(bytes, starts[OCCURRED_AT] as number)
  }

  get orderingKey(): string {
    return this.#key ?? defaultOrderingKey(this.#aggregateType, this.#aggregateId)
  }

  get event(): OutboxEvent {
    this.#event ??= this.#read()
    return this.#event
  }

  #read(): OutboxEvent {
    return {
      eventId: this.eventId,
      position: this.position,
      stream: this.stream,
      type: this.type,
      schemaVersion: this.#version,
      aggregateType: this.#aggregateType,
      aggregateId: this.#aggregateId,
      orderingKey: this.orderingKey,
      sequence: this.#sequence,
      payload: JSON.parse(this.#payload) as unknown,
      headers: parseHeaders(this.#headers),
      occurredAt: this.#occurredAt,
      createdAt: this.createdAt,
    }
  }
}

/** Notes where each of our columns is. Returns where the row ends. */
function locate({ wanted, starts, lengths }: TupleReader, bytes: Buffer, at: number): number {
  const count = bytes.readUInt16BE(at)
  let offset = at + 2
  for (let column = 0; column < count; column += 1) {
    const kind = bytes[offset]
    offset += 1
    const isAbsent = kind === NULL || kind === UNCHANGED
    const length = isAbsent ? -1 : bytes.readInt32BE(offset)
    if (!isAbsent) offset += 4
    const ours = wanted[column] as number
    if (ours >= 0) {
      starts[ours] = offset
      lengths[ours] = length
    }
    if (!isAbsent) offset += length
  }
  return offset
}

function text({ starts, lengths }: TupleReader, bytes: Buffer, column: number): string {
  const start = starts[column] as number
  return bytes.toString('utf8', start, start + (lengths[column] as number))
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
  const upper = bytes.readInt32BE(at)
  if (upper < 0 || upper >= SAFE_UPPER) return bytes.readBigInt64BE(at)
  return upper * UPPER_HALF + bytes.readUInt32BE(at + 4)
}

function time(bytes: Buffer, at: number): Date {
  return dateOfHalves(bytes.readInt32BE(at), bytes.readUInt32BE(at + 4))
}

function uuid(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
