/** Beyond this a look at every byte costs more than reading the text anew. */
const LONGEST_BYTES = 64

/** Texts that are nearly always the last one again, such as names of streams: it is read once, and shared. */
export class RepeatedText {
  readonly #bytes = new Uint8Array(LONGEST_BYTES)
  #length = -1
  #text = ''

  /** The text in UTF-8 between the two places. */
  read(bytes: Buffer, start: number, end: number): string {
    const length = end - start
    if (length > LONGEST_BYTES) return bytes.toString('utf8', start, end)
    if (!this.#isLast(bytes, start, length)) {
      this.#text = bytes.toString('utf8', start, end)
      this.#bytes.set(bytes.subarray(start, end))
      this.#length = length
    }
    return this.#text
  }

  #isLast(bytes: Buffer, start: number, length: number): boolean {
    if (length !== this.#length) return false
    for (let index = 0; index < length; index += 1) {
      if (this.#bytes[index] !== bytes[start + index]) return false
    }
    return true
  }
}
