import { randomFillSync } from 'node:crypto'
import { hostname } from 'node:os'
import { type Clock, systemClock } from './clock.ts'

/** Where identities come from, handed in so that tests can name them. */
export interface Ids {
  /** A UUID v7, greater than every one made before it by the same source. */
  eventId(): string
  /** A name for one worker's life: host, process and a random tail, so that two lives never share it. */
  workerId(): string
}

/** Fills the given bytes with randomness. */
export type FillRandom = (bytes: Uint8Array) => void

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i
const COUNTER_END = 2 ** 32
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** True for the text form of any UUID, upper or lower case. */
export function isUuid(text: unknown): text is string {
  return typeof text === 'string' && UUID.test(text)
}

/** True for the text form of a UUID version 7. */
export function isUuidV7(text: unknown): text is string {
  return typeof text === 'string' && UUID_V7.test(text)
}

/** The one spelling under which ids are compared: lower case. Null for anything that is no UUID. */
export function normaliseUuid(text: unknown): string | null {
  return isUuid(text) ? text.toLowerCase() : null
}

/** When a UUID v7 was made, in milliseconds since 1970. Null for anything else. */
export function uuidV7Ms(text: unknown): number | null {
  return isUuidV7(text) ? Number.parseInt(text.slice(0, 8) + text.slice(9, 13), 16) : null
}

/** A source of its own, with its own counter. */
export function createIds(clock: Clock = systemClock, fillRandom: FillRandom = fillFromPool()): Ids {
  const nextUuid = uuidV7Source(clock, fillRandom)
  return { eventId: nextUuid, workerId: () => workerName(fillRandom) }
}

/** The process's own source: all events published by one process ascend, whoever publishes them. */
export const systemIds: Ids = createIds()

/**
 * RFC 9562, method 1: 48 bits of milliseconds, then a 32-bit counter seeded at random (its top bit clear, for room)
 * in each millisecond, then 42 random bits. A clock set back, or a counter that runs over, keeps or borrows the
 * millisecond: ids only ever ascend.
 */
function uuidV7Source(clock: Clock, fillRandom: FillRandom): () => string {
  const random = new Uint8Array(10)
  let lastMs = -1
  let counter = 0
  return () => {
    fillRandom(random)
    const nowMs = clock.now().getTime()
    if (nowMs > lastMs) {
      lastMs = nowMs
      counter = seedOf(random)
    } else {
      counter += 1
      if (counter === COUNTER_END) {
        lastMs += 1
        counter = seedOf(random)
      }
    }
    return uuidText(lastMs, counter, random)
  }
}

function seedOf(random: Uint8Array): number {
  return (
    (byteAt(random, 0) & 0x7f) * 2 ** 24 +
    (byteAt(random, 1) << 16) +
    (byteAt(random, 2) << 8) +
    byteAt(random, 3)
  )
}

function uuidText(ms: number, counter: number, random: Uint8Array): string {
  const high = Math.floor(ms / 2 ** 16)
  const low = ms % 2 ** 16
  // The counter takes the 12 bits after the version, the 6 after the variant, and the 14 that follow.
  const a = counter >>> 20
  const b = (counter >>> 14) & 0x3f
  const c = counter & 0x3fff
  return (
    `${hex(high >>> 24)}${hex(high >>> 16)}${hex(high >>> 8)}${hex(high)}-${hex(low >>> 8)}${hex(low)}-` +
    `${hex(0x70 | (a >>> 8))}${hex(a)}-${hex(0x80 | b)}${hex(c >>> 6)}-` +
    `${hex(((c & 0x3f) << 2) | (byteAt(random, 4) & 3))}${hex(byteAt(random, 5))}${hex(byteAt(random, 6))}` +
    `${hex(byteAt(random, 7))}${hex(byteAt(random, 8))}${hex(byteAt(random, 9))}`
  )
}

function hex(value: number): string {
  return HEX[value & 0xff] as string
}

function byteAt(bytes: Uint8Array, index: number): number {
  return bytes[index] as number
}

// One call to the system per 400 ids: randomFillSync costs more than all the rest of an id.
function fillFromPool(): FillRandom {
  const pool = new Uint8Array(4_000)
  let used = pool.length
  return (bytes) => {
    if (used + bytes.length > pool.length) {
      randomFillSync(pool)
      used = 0
    }
    bytes.set(pool.subarray(used, used + bytes.length))
    used += bytes.length
  }
}

function workerName(fillRandom: FillRandom): string {
  const tail = new Uint8Array(4)
  fillRandom(tail)
  return `${hostname().slice(0, 60)}:${process.pid}:${Array.from(tail, hex).join('')}`
}
