/** What `--only` and `--contenders` ask for: parts of names, separated by commas or semicolons; none take everything. */
export class Choice {
  readonly #option: string
  readonly #parts: readonly string[]

  constructor(option: string, text: string) {
    this.#option = option
    this.#parts = text
      .split(/[;,]/)
      .map((part) => part.trim().toLowerCase())
      .filter((part) => part !== '')
  }

  get takesAll(): boolean {
    return this.#parts.length === 0
  }

  /** Whether a name has one of the parts in it, in any case. */
  takes(name: string): boolean {
    return this.takesAll || this.#parts.some((part) => isIn(name, part))
  }

  /** @throws Error if a part is in none of the names: a run that silently leaves it out looks as if it had been measured. */
  refuseStrangers(names: readonly string[]): void {
    const strangers = this.#parts.filter((part) => !names.some((name) => isIn(name, part)))
    if (strangers.length === 0) return
    throw new Error(
      `${this.#option}: ${strangers.join(', ')} is part of no name. There are: ${names.join('; ')}`,
    )
  }
}

function isIn(name: string, part: string): boolean {
  return name.toLowerCase().includes(part)
}
