/** A result that could not be written, and what waits for it, in the order it came. */
interface Turn<Item> {
  readonly first: Item
  readonly behind: Item[]
}

/**
 * Which results have to wait because an earlier one of their ordering key could not be written: it is locked, or refused.
 *
 * Written before it, they would be DONE while it is not, and if the worker is lost it comes again, after them. Unwritten,
 * they come again with it, behind it.
 */
export class KeyTurns<Item> {
  readonly #keyOf: (item: Item) => string | null
  readonly #turns = new Map<string, Turn<Item>>()

  /** `keyOf` tells whose turn it is; null for a result that waits for nobody and that nobody waits for. */
  constructor(keyOf: (item: Item) => string | null) {
    this.#keyOf = keyOf
  }

  /** Whether something could not be written: mostly nothing, and then nothing waits. */
  get any(): boolean {
    return this.#turns.size > 0
  }

  /** Those that may be written now, and those that wait from now on. */
  divide(items: readonly Item[]): readonly [free: readonly Item[], waiting: readonly Item[]] {
    const [free, waiting]: [Item[], Item[]] = [[], []]
    for (const item of items) {
      const side = this.#queueBehind(item) ? waiting : free
      side.push(item)
    }
    return [free, waiting]
  }

  /** These could not be written. Returns those to be offered again: of each key the first, which the others wait for. */
  unwritten(items: readonly Item[]): readonly Item[] {
    return items.filter((item) => {
      if (this.#queueBehind(item)) return false
      this.#begin(item)
      return true
    })
  }

  /** It is over with this one, whichever way. Returns what waited for it, which waits no more. */
  ended(item: Item): readonly Item[] {
    const key = this.any ? this.#keyOf(item) : null
    const turn = key === null ? undefined : this.#turns.get(key)
    if (key === null || turn?.first !== item) return NONE
    this.#turns.delete(key)
    return turn.behind
  }

  #begin(item: Item): void {
    const key = this.#keyOf(item)
    if (key !== null && !this.#turns.has(key)) this.#turns.set(key, { first: item, behind: [] })
  }

  /** Puts it behind the one that it has to wait for. False if there is none. */
  #queueBehind(item: Item): boolean {
    const key = this.#keyOf(item)
    const turn = key === null ? undefined : this.#turns.get(key)
    if (turn === undefined || turn.first === item) return false
    turn.behind.push(item)
    return true
  }
}

const NONE: readonly never[] = []
