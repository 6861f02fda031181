/** Reads the parts of an answer one after the other. */
export class ByteReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  int16(): number {
    return this.#bytes.readInt16BE(this.skip(2))
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.skip(4))
  }

  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.skip(8))
  }

  /** A text with its length before it; empty where there is none. */
  text(): string {
    const length = Math.max(0, this.int16())
    const start = this.skip(length)
    return this.#bytes.toString('utf8', start, start + length)
  }

  /** Bytes with their length before them. */
  bytes(): Buffer {
    const length = Math.max(0, this.int32())
    const start = this.skip(length)
    return this.#bytes.subarray(start, start + length)
  }

  /** A list, each part read by the function. */
  list<Each>(read: () => Each): readonly Each[] {
    return Array.from({ length: Math.max(0, this.int32()) }, read)
  }

  /** Passes over so many bytes. Returns where they began. */
  skip(count: number): number {
    const start = this.#at
    this.#at += count
    return start
  }
}
