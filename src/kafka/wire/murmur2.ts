const SEED = 0x97_47_b2_8c
const FACTOR = 0x5b_d1_e9_95
const SHIFT = 24
const BLOCK = 4

/** The hash by which Java's producer, kafkajs and Debezium choose the partition of a key. */
export function murmur2(bytes: Uint8Array, start: number, end: number): number {
  let hash = SEED ^ (end - start)
  let at = start
  for (; at + BLOCK <= end; at += BLOCK) {
    let block = Math.imul(littleEndian(bytes, at, BLOCK), FACTOR)
    block = Math.imul(block ^ (block >>> SHIFT), FACTOR)
    hash = Math.imul(hash, FACTOR) ^ block
  }
  if (at < end) hash = Math.imul(hash ^ littleEndian(bytes, at, end - at), FACTOR)
  hash = Math.imul(hash ^ (hash >>> 13), FACTOR)
  return hash ^ (hash >>> 15)
}

function littleEndian(bytes: Uint8Array, at: number, count: number): number {
  let value = 0
  for (let index = 0; index < count; index += 1) value |= (bytes[at + index] as number) << (index * 8)
  return value
}
