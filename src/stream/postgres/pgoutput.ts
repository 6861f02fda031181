import { CommitpostError } from '../../runtime/errors.ts'
import { KeptRows } from './kept-rows.ts'
import { TupleEvent, type TupleReader, tupleReader } from './tuple-event.ts'

/** Who is told what the server's plugin `pgoutput` (protocol version 1, binary) says. */
export interface ChangeListener {
  /** Returns whether the event is kept. */
  insert(event: TupleEvent): boolean
  /** A transaction has ended; the log goes on at `end`. */
  commit(end: bigint): void
  /** Something written by pg_logical_emit_message, outside any transaction. */
  message(prefix: string, content: string, lsn: bigint): void
}

const COMMIT = 0x43
const INSERT = 0x49
const MESSAGE = 0x4d
const RELATION = 0x52

const FLAG_TRANSACTIONAL = 1
const COLUMN_FIXED_BYTES = 8

/** Reads the messages of one replication connection. What it is given has to stay as it is: events are read from it later. */
export class PgoutputDecoder {
  readonly #listener: ChangeListener
  readonly #readers = new Map<number, TupleReader>()
  readonly #kept = new KeptRows()

  constructor(listener: ChangeListener) {
    this.#listener = listener
  }

  /** One message, from `at` to `end`. */
  decode(bytes: Buffer, at: number, end: number): void {
    const kind = bytes[at]
    if (kind === INSERT) this.#insert(bytes, at, end)
    // After its flags and its own place stands the place after it.
    else if (kind === COMMIT) this.#listener.commit(bytes.readBigUInt64BE(at + 10))
    else if (kind === RELATION) this.#relation(bytes, at)
    else if (kind === MESSAGE) this.#message(bytes, at)
    // Beginnings, types and origins say nothing of events, and nothing else is published.
  }

  #insert(bytes: Buffer, at: number, end: number): void {
    const reader = this.#readers.get(bytes.readUInt32BE(at + 1))
    if (reader === undefined) {
      throw new CommitpostError('INTERNAL', 'The log brought a row of a table that it had not described.')
    }
    // After the relation comes an 'N', then the tuple.
    const start = at + 6
    const event = new TupleEvent(reader, bytes, start, end - start)
    if (this.#listener.insert(event)) this.#kept.add(event)
  }

  /** These bytes hold no more messages. Call it for all that messages were in, or came with. */
  ended(bytes: Buffer): void {
    this.#kept.ended(bytes)
  }

  #relation(bytes: Buffer, at: number): void {
    const oid = bytes.readUInt32BE(at + 1)
    const schemaEnd = bytes.indexOf(0, at + 5)
    const nameEnd = bytes.indexOf(0, schemaEnd + 1)
    // One byte for the replica identity.
    let offset = nameEnd + 2
    const count = bytes.readUInt16BE(offset)
    offset += 2
    const columns: string[] = []
    for (let column = 0; column < count; column += 1) {
      const end = bytes.indexOf(0, offset + 1)
      columns.push(bytes.toString('utf8', offset + 1, end))
      offset = end + 1 + COLUMN_FIXED_BYTES
    }
    this.#readers.set(oid, tupleReader(columns))
  }

  #message(bytes: Buffer, at: number): void {
    if (((bytes[at + 1] as number) & FLAG_TRANSACTIONAL) !== 0) return
    const lsn = bytes.readBigUInt64BE(at + 2)
    const prefixEnd = bytes.indexOf(0, at + 10)
    const length = bytes.readUInt32BE(prefixEnd + 1)
    const prefix = bytes.toString('utf8', at + 10, prefixEnd)
    this.#listener.message(prefix, bytes.toString('utf8', prefixEnd + 5, prefixEnd + 5 + length), lsn)
  }
}
