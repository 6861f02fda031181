/** What stands for all values beyond the bound. */
export const OTHER = 'other'

/**
 * The values a label may take: those that are known from the beginning, and so many that come up. A program that writes
 * a new stream or type with each event must not make a new series with each of them.
 */
export class BoundedLabel {
  readonly #values: Set<string>
  readonly #most: number

  constructor(known: Iterable<string>, strangers: number) {
    this.#values = new Set(known)
    this.#most = this.#values.size + strangers
  }

  /** Everything it has let pass. */
  get values(): readonly string[] {
    return [...this.#values]
  }

  /** The value itself, or `other` where there are too many already. */
  of(value: string): string {
    if (this.#values.has(value)) return value
    if (this.#values.size >= this.#most) return OTHER
    this.#values.add(value)
    return value
  }
}
