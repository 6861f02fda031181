/** A power of two, as the number of slots always is: a place in the ring is then found without a division. */
const FEWEST_SLOTS = 16

/**
 * A queue in a ring of slots that are used again. However long it is in use, it takes no more memory than for the most that
 * ever waited at once, and what was taken is let go of.
 */
export class Fifo<Item> {
  #slots = Array.from<Item | undefined>({ length: FEWEST_SLOTS })
  #first = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The one that is taken next. */
  get first(): Item | undefined {
    return this.#slots[this.#first]
  }

  push(item: Item): void {
    if (this.#size === this.#slots.length) this.#grow()
    this.#slots[(this.#first + this.#size) & (this.#slots.length - 1)] = item
    this.#size += 1
  }

  take(): Item | undefined {
    const item = this.#slots[this.#first]
    if (this.#size === 0) return undefined
    this.#slots[this.#first] = undefined
    this.#first = (this.#first + 1) & (this.#slots.length - 1)
    this.#size -= 1
    return item
  }

  /** Takes these out, wherever they stand. */
  remove(gone: ReadonlySet<Item>): void {
    for (let left = this.#size; left > 0; left -= 1) {
      const item = this.take() as Item
      if (!gone.has(item)) this.push(item)
    }
  }

  #grow(): void {
    const waiting = [...this.#slots.slice(this.#first), ...this.#slots.slice(0, this.#first)]
    this.#slots = Array.from({ length: waiting.length * 2 }, (_, index) => waiting[index])
    this.#first = 0
  }
}
