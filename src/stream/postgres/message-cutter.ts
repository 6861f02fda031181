/** Who is told what a connection brings. */
export interface MessageListener {
  /** The content of a CopyData message, between the two places. The bytes stay as they are. */
  copyData(bytes: Buffer, start: number, end: number): void
  /** Any other message, whole. */
  other(message: Buffer): void
}

const COPY_DATA = 0x64
/** Its kind, and the length of the rest with these four bytes. */
const HEADER_BYTES = 5

/**
 * Cuts what a replication connection brings into messages where it lies. `pg` makes three objects for each of them and
 * moves their bytes, so that every row would have to be copied once more: that cost more than to decode it.
 */
export class MessageCutter {
  readonly #listener: MessageListener
  /** A message of which the rest is yet to come, or the header of one. Not from Node's pool, which it would keep in memory. */
  #begun: Buffer | null = null
  #filled = 0

  constructor(listener: MessageListener) {
    this.#listener = listener
  }

  /** The next bytes of the connection. They must not be used again by whoever brings them. */
  take(chunk: Buffer): void {
    let at = this.#begun === null ? 0 : this.#complete(chunk)
    while (at + HEADER_BYTES <= chunk.length) {
      const end = at + sizeAt(chunk, at)
      if (end > chunk.length) break
      this.#tell(chunk, at, end)
      at = end
    }
    if (at < chunk.length) this.#begin(chunk, at)
  }

  #tell(bytes: Buffer, at: number, end: number): void {
    if (bytes[at] === COPY_DATA) this.#listener.copyData(bytes, at + HEADER_BYTES, end)
    else this.#listener.other(bytes.subarray(at, end))
  }

  #begin(chunk: Buffer, at: number): void {
    const hasHeader = at + HEADER_BYTES <= chunk.length
    this.#begun = Buffer.allocUnsafeSlow(hasHeader ? sizeAt(chunk, at) : HEADER_BYTES)
    this.#filled = chunk.copy(this.#begun, 0, at)
  }

  /** Fills up what had begun. Returns where in the chunk it ends. */
  #complete(chunk: Buffer): number {
    let at = 0
    while (this.#begun !== null) {
      const copied = chunk.copy(this.#begun, this.#filled, at)
      at += copied
      this.#filled += copied
      if (this.#filled < this.#begun.length) return at
      const whole = this.#begun
      const size = sizeAt(whole, 0)
      this.#begun = null
      if (size === whole.length) this.#tell(whole, 0, size)
      // It was the header that had come in two parts.
      else {
        this.#begun = Buffer.allocUnsafeSlow(size)
        whole.copy(this.#begun)
      }
    }
    return at
  }
}

/** Of the whole message. */
function sizeAt(bytes: Buffer, at: number): number {
  return 1 + bytes.readUInt32BE(at + 1)
}
