import type { KafkaMessage, PreparedMessage, SentHeader } from '../client.ts'
import { murmur2 } from './murmur2.ts'
import { writeVarint } from './varint.ts'

/** A message as it stands in a batch, from its key on: what is before that depends on its place there. */
export class EncodedMessage implements PreparedMessage {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  /** What its partition follows from; null where it has no key. */
  readonly keyHash: number | null

  constructor(bytes: Buffer, start: number, end: number, keyHash: number | null) {
    this.bytes = bytes
    this.start = start
    this.end = end
    this.keyHash = keyHash
  }

  get size(): number {
    return this.end - this.start
  }
}

/** A length of -1. */
const ABSENT = 1
const LONGEST_VARINT = 5
/** UTF-8 has at most so many bytes for each unit of a text. */
const BYTES_PER_UNIT = 3
const SLAB_BYTES = 256 * 1_024
/** Up to here a look at each character costs less than a call of the runtime; and a length takes one byte. */
const SHORT = 48
const ASCII_END = 0x80
/** More names than these come from data and not from code. */
const MOST_NAMES = 1_000

/** A header whose value is the same again is copied as a whole. */
interface KnownHeader {
  readonly name: Buffer
  value: string | Buffer
  whole: Buffer | null
}

/** Writes messages one after the other into large pieces of memory: one of its own for each would cost more than all else. */
export class MessageEncoder {
  #slab = Buffer.alloc(0)
  #used = 0
  readonly #known = new Map<string, KnownHeader>()

  /** The message in bytes. They stay as they are. */
  encode({ key, value, headers }: KafkaMessage): EncodedMessage {
    const names = Object.keys(headers)
    this.#ensure(mostBytes(key) + mostBytes(value) + mostBytesOfHeaders(names, headers))
    const start = this.#used
    let keyHash: number | null = null
    if (key === null) this.#slab[this.#used++] = ABSENT
    else keyHash = murmur2(this.#slab, this.#write(key), this.#used)
    this.#write(value)
    this.#used = writeVarint(this.#slab, this.#used, countOf(names, headers))
    for (const name of names) this.#writeHeader(name, headers[name] as SentHeader)
    return new EncodedMessage(this.#slab, start, this.#used, keyHash)
  }

  #ensure(size: number): void {
    if (this.#used + size <= this.#slab.length) return
    this.#slab = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, size))
    this.#used = 0
  }

  #writeHeader(name: string, value: SentHeader): void {
    if (Array.isArray(value)) {
      for (const each of value) this.#writeHeader(name, each)
      return
    }
    const known = this.#knownOf(name)
    const isAgain = known.value === value
    if (isAgain && known.whole !== null) return this.#copy(known.whole)
    const start = this.#used
    this.#copy(known.name)
    this.#write(value)
    known.value = value
    known.whole = isAgain ? Buffer.from(this.#slab.subarray(start, this.#used)) : null
  }

  #knownOf(name: string): KnownHeader {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    if (this.#known.size >= MOST_NAMES) this.#known.clear()
    const bytes = Buffer.alloc(mostBytes(name))
    const length = Buffer.byteLength(name)
    const end = writeVarint(bytes, 0, length)
    bytes.write(name, end)
    const made: KnownHeader = { name: bytes.subarray(0, end + length), value: '', whole: null }
    this.#known.set(name, made)
    return made
  }

  #copy(bytes: Buffer): void {
    const slab = this.#slab
    let at = this.#used
    for (let index = 0; index < bytes.length; index += 1) slab[at++] = bytes[index] as number
    this.#used = at
  }

  /** The length, then the bytes. Returns where these begin. */
  #write(value: string | Buffer): number {
    if (typeof value === 'string' && value.length <= SHORT && this.#writeShort(value)) {
      return this.#used - value.length
    }
    const length = Buffer.byteLength(value)
    const start = writeVarint(this.#slab, this.#used, length)
    if (typeof value === 'string') this.#slab.write(value, start)
    else value.copy(this.#slab, start)
    this.#used = start + length
    return start
  }

  /** False, and nothing written, where it is not all ASCII. */
  #writeShort(text: string): boolean {
    const slab = this.#slab
    const start = this.#used + 1
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index)
      if (code >= ASCII_END) return false
      slab[start + index] = code
    }
    slab[this.#used] = text.length * 2
    this.#used = start + text.length
    return true
  }
}

function mostBytes(value: string | Buffer | null): number {
  if (value === null) return LONGEST_VARINT
  return LONGEST_VARINT + (typeof value === 'string' ? value.length * BYTES_PER_UNIT : value.length)
}

function mostBytesOfHeaders(names: readonly string[], headers: KafkaMessage['headers']): number {
  let most = LONGEST_VARINT
  for (const name of names) {
    const value = headers[name] as SentHeader
    if (!Array.isArray(value)) most += mostBytes(name) + mostBytes(value)
    else for (const each of value) most += mostBytes(name) + mostBytes(each)
  }
  return most
}

function countOf(names: readonly string[], headers: KafkaMessage['headers']): number {
  let count = names.length
  for (const name of names) {
    const value = headers[name]
    if (Array.isArray(value)) count += value.length - 1
  }
  return count
}
