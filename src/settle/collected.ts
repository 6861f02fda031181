/** Somebody who waits for what was there when he came. */
interface Waiting {
  /** How many of those are still here. */
  ahead: number
  readonly go: () => void
}

/** Results that wait to be written, in the order they came, and who waits for them. */
export class Collected<Item> {
  #items: Item[] = []
  #waiting: Waiting[] = []

  get length(): number {
    return this.#items.length
  }

  /** Whether somebody waits for some of them. */
  get isAwaited(): boolean {
    return this.#waiting.length > 0
  }

  push(item: Item): void {
    this.#items.push(item)
  }

  /** The first, so many at most. They stay. */
  first(count: number): readonly Item[] {
    return this.#items.slice(0, count)
  }

  /** Takes out the first so many. */
  take(count: number): readonly Item[] {
    for (const waiting of this.#waiting) waiting.ahead = Math.max(0, waiting.ahead - count)
    return this.#items.splice(0, count)
  }

  /** Takes out those of which this is true. */
  takeOut(isMeant: (item: Item) => boolean): readonly Item[] {
    for (const waiting of this.#waiting) waiting.ahead -= this.first(waiting.ahead).filter(isMeant).length
    const taken = this.#items.filter(isMeant)
    if (taken.length > 0) this.#items = this.#items.filter((item) => !isMeant(item))
    return taken
  }

  /** Resolves at the first `dealtWith` after everything that is here now was taken out. */
  untilDealtWith(): Promise<void> {
    return new Promise((go) => {
      this.#waiting.push({ ahead: this.#items.length, go })
    })
  }

  /** Nothing that was taken out is under way. */
  dealtWith(): void {
    if (!this.isAwaited) return
    const served = this.#waiting.filter(({ ahead }) => ahead === 0)
    this.#waiting = this.#waiting.filter(({ ahead }) => ahead > 0)
    for (const { go } of served) go()
  }
}
