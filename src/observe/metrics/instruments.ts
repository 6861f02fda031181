import type { Family, Label, Sample } from './exposition.ts'

/** What a metric is called, means and is told apart by. */
export interface MetricSpec<Names extends readonly string[]> {
  /** Without the prefix. */
  readonly name: string
  readonly help: string
  readonly labels: Names
}

type ValuesOf<Names extends readonly string[]> = { readonly [Index in keyof Names]: string }

/** One number that only grows, or one that goes up and down. */
export interface Count {
  value: number
}

/** How often what was measured fell below each bound, and what it came to together. */
export interface Distribution {
  readonly counts: number[]
  sum: number
  count: number
}

/** The series of one metric by the values of their labels. */
class Series<Names extends readonly string[], Child> {
  readonly spec: MetricSpec<Names>
  readonly #make: () => Child
  readonly #children = new Map<string, { readonly labels: readonly Label[]; readonly child: Child }>()

  constructor(spec: MetricSpec<Names>, make: () => Child) {
    this.spec = spec
    this.#make = make
  }

  /** The series with these values, made when it is first asked for. */
  at(...values: ValuesOf<Names>): Child {
    const key = values.join('\u001f')
    const found = this.#children.get(key)
    if (found !== undefined) return found.child
    const labels = this.spec.labels.map((name, index): Label => [name, values[index] ?? ''])
    const child = this.#make()
    this.#children.set(key, { labels, child })
    return child
  }

  protected samples(samplesOf: (child: Child, labels: readonly Label[]) => readonly Sample[]): Sample[] {
    return [...this.#children.values()].flatMap(({ child, labels }) => samplesOf(child, labels))
  }
}

/** Numbers that only grow. */
export class Counter<Names extends readonly string[]> extends Series<Names, Count> {
  constructor(spec: MetricSpec<Names>) {
    super(spec, () => ({ value: 0 }))
  }

  add(amount: number, ...values: ValuesOf<Names>): void {
    this.at(...values).value += amount
  }

  family(): Family {
    const samples = this.samples(({ value }, labels) => [{ suffix: '', labels, value }])
    return { name: this.spec.name, help: this.spec.help, type: 'counter', samples }
  }
}

/** Distributions over fixed bounds. */
export class Histogram<Names extends readonly string[]> extends Series<Names, Distribution> {
  readonly #bounds: readonly number[]

  constructor(spec: MetricSpec<Names>, bounds: readonly number[]) {
    super(spec, () => ({ counts: bounds.map(() => 0), sum: 0, count: 0 }))
    this.#bounds = bounds
  }

  /** Adds one measurement to a series that `at` returned: looked up once, it costs next to nothing. */
  observe(distribution: Distribution, value: number): void {
    const index = this.#bounds.findIndex((bound) => value <= bound)
    if (index >= 0) distribution.counts[index] = (distribution.counts[index] ?? 0) + 1
    distribution.sum += value
    distribution.count += 1
  }

  family(): Family {
    const samples = this.samples((distribution, labels) => this.#samplesOf(distribution, labels))
    return { name: this.spec.name, help: this.spec.help, type: 'histogram', samples }
  }

  #samplesOf({ counts, sum, count }: Distribution, labels: readonly Label[]): readonly Sample[] {
    let below = 0
    const buckets = this.#bounds.map((bound, index): Sample => {
      below += counts[index] ?? 0
      return { suffix: '_bucket', labels: [...labels, ['le', String(bound)]], value: below }
    })
    return [
      ...buckets,
      { suffix: '_bucket', labels: [...labels, ['le', '+Inf']], value: count },
      { suffix: '_sum', labels, value: sum },
      { suffix: '_count', labels, value: count },
    ]
  }
}
