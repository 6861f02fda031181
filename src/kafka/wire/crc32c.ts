const POLYNOMIAL = 0x82_f6_3b_78
const BYTE_VALUES = 256
/** Four bytes at a time: what each of the four adds stands in a table of its own. */
const STRIDE = 4
const TABLES = makeTables()

/** The checksum (CRC-32C) of the bytes from `start` to `end`, which Kafka asks of every batch. */
export function crc32c(bytes: Uint8Array, start: number, end: number): number {
  let crc = -1
  let at = start
  for (const last = end - STRIDE; at <= last; at += STRIDE) {
    crc =
      (TABLES[768 + ((crc ^ (bytes[at] as number)) & 0xff)] as number) ^
      (TABLES[512 + (((crc >>> 8) ^ (bytes[at + 1] as number)) & 0xff)] as number) ^
      (TABLES[256 + (((crc >>> 16) ^ (bytes[at + 2] as number)) & 0xff)] as number) ^
      (TABLES[(crc >>> 24) ^ (bytes[at + 3] as number)] as number)
  }
  for (; at < end; at += 1) {
    crc = (TABLES[(crc ^ (bytes[at] as number)) & 0xff] as number) ^ (crc >>> 8)
  }
  return (crc ^ -1) >>> 0
}

function makeTables(): Int32Array {
  const tables = new Int32Array(BYTE_VALUES * STRIDE)
  for (let value = 0; value < BYTE_VALUES; value += 1) {
    let crc = value
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
    tables[value] = crc
  }
  for (let index = BYTE_VALUES; index < tables.length; index += 1) {
    const before = tables[index - BYTE_VALUES] as number
    tables[index] = (before >>> 8) ^ (tables[before & 0xff] as number)
  }
  return tables
}
