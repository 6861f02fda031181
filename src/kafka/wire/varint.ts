const MORE = 0x80
const LOW_BITS = 0x7f

/** Writes a number from 0 up as Kafka has it in records: zigzag, seven bits in a byte. Returns where it ends. */
export function writeVarint(bytes: Uint8Array, at: number, value: number): number {
  let rest = value * 2
  let end = at
  while (rest > LOW_BITS) {
    bytes[end] = (rest & LOW_BITS) | MORE
    end += 1
    rest = Math.floor(rest / MORE)
  }
  bytes[end] = rest
  return end + 1
}

/** How many bytes `writeVarint` takes. */
export function varintSize(value: number): number {
  let size = 1
  for (let rest = value * 2; rest > LOW_BITS; rest = Math.floor(rest / MORE)) size += 1
  return size
}
