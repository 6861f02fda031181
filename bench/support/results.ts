import { median } from './statistics.ts'

/** What one contender did in one round of one scenario. */
export interface Sample {
  readonly scenario: string
  readonly contender: string
  readonly round: number
  /** Named figures; the names say their unit. */
  readonly figures: Readonly<Record<string, number>>
}

/** A goal of the project, and what was measured. */
export interface Bar {
  readonly name: string
  readonly figure: number
  readonly bar: number
  readonly is: BarKind
}

/** How the figure has to stand to the bar. */
export type BarKind = 'at least' | 'at most' | 'under'

/** All samples of a run. */
export class Results {
  readonly #samples: Sample[]

  constructor(samples: readonly Sample[] = []) {
    this.#samples = [...samples]
  }

  get samples(): readonly Sample[] {
    return this.#samples
  }

  add(sample: Sample): void {
    this.#samples.push(sample)
  }

  /** The contenders of a scenario, in the order of their first appearance. */
  contenders(scenario: string): readonly string[] {
    const found = this.#samples.filter((sample) => sample.scenario === scenario)
    return [...new Set(found.map((sample) => sample.contender))]
  }

  /** The number of the round that comes next in a scenario. */
  nextRound(scenario: string): number {
    const numbers = this.#samples.filter((sample) => sample.scenario === scenario).map(({ round }) => round)
    return Math.max(0, ...numbers) + 1
  }

  /** The median over all rounds, or undefined when it was not measured. */
  median(scenario: string, contender: string, figure: string): number | undefined {
    const values = this.#samples
      .filter((sample) => sample.scenario === scenario && sample.contender === contender)
      .map((sample) => sample.figures[figure])
      .filter((value) => value !== undefined)
    return values.length === 0 ? undefined : median(values)
  }

  /** How the medians of two contenders stand to each other, or undefined when one was not measured. */
  ratio(
    figure: string,
    one: readonly [string, string],
    other: readonly [string, string],
  ): number | undefined {
    const above = this.median(one[0], one[1], figure)
    const below = this.median(other[0], other[1], figure)
    return above === undefined || below === undefined ? undefined : above / below
  }

  /** How the median of a contender stands to the best of its peers, or undefined when it or all of them were not measured. */
  ratioToBest(
    figure: string,
    scenario: string,
    contender: string,
    peers: readonly { readonly name: string }[],
    best: 'highest' | 'lowest' = 'highest',
  ): number | undefined {
    const own = this.median(scenario, contender, figure)
    const measured = peers
      .map(({ name }) => this.median(scenario, name, figure))
      .filter((value) => value !== undefined)
    if (own === undefined || measured.length === 0) return undefined
    return own / (best === 'highest' ? Math.max(...measured) : Math.min(...measured))
  }
}

/** A bar for a figure that may not have been measured. */
export function bar(name: string, figure: number | undefined, is: BarKind, limit: number): readonly Bar[] {
  return figure === undefined ? [] : [{ name, figure, bar: limit, is }]
}

/** Whether a bar is met. */
export function isMet({ figure, bar: limit, is }: Bar): boolean {
  if (is === 'at least') return figure >= limit
  return is === 'at most' ? figure <= limit : figure < limit
}
