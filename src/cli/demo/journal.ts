import type { Clock } from '../../runtime/clock.ts'

/** What the demo counts by itself, to be compared with what the database says. */
export interface JournalCounts {
  /** Events whose transaction committed. */
  readonly published: number
  /** Transactions that were rolled back on purpose. */
  readonly rolledBack: number
  /** Times a handler was given an event of such a transaction. Must stay 0. */
  readonly ghosts: number
}

/** Two points of a distribution, in milliseconds; null while there is nothing to tell. */
export interface Latency {
  readonly p50: number | null
  readonly p99: number | null
}

interface OnItsWay {
  readonly publishedMs: number
  arrivals: number
}

const MOST_SAMPLES = 20_000
const RECENT_SAMPLES = 500

/** Remembers what was published and what arrived. */
export class Journal {
  readonly #clock: Clock
  readonly #subscriptions: number
  readonly #onTheirWay = new Map<string, OnItsWay>()
  readonly #rolledBackIds = new Set<string>()
  readonly #samplesMs: number[] = []
  #nextSample = 0
  #published = 0
  #rolledBack = 0
  #ghosts = 0

  constructor(clock: Clock, subscriptions: number) {
    this.#clock = clock
    this.#subscriptions = subscriptions
  }

  get counts(): JournalCounts {
    return { published: this.#published, rolledBack: this.#rolledBack, ghosts: this.#ghosts }
  }

  /** Events were written, their transaction is still open. */
  written(eventIds: readonly string[]): void {
    const publishedMs = this.#clock.monotonicMs()
    for (const id of eventIds) this.#onTheirWay.set(id, { publishedMs, arrivals: 0 })
  }

  committed(eventIds: readonly string[]): void {
    this.#published += eventIds.length
  }

  rolledBack(eventIds: readonly string[]): void {
    this.#rolledBack += 1
    for (const id of eventIds) {
      this.#ghosts += this.#onTheirWay.get(id)?.arrivals ?? 0
      this.#onTheirWay.delete(id)
      this.#rolledBackIds.add(id)
    }
  }

  /** A handler was given the event. */
  arrived(eventId: string, attempt: number): void {
    if (this.#rolledBackIds.has(eventId)) this.#ghosts += 1
    const event = this.#onTheirWay.get(eventId)
    if (event !== undefined && attempt === 1) event.arrivals += 1
  }

  /** A handler is done with the event. Retries are left out of the latency: they wait on purpose. */
  handled(eventId: string, attempt: number): void {
    const event = this.#onTheirWay.get(eventId)
    if (event === undefined) return
    if (attempt === 1) this.#sample(this.#clock.monotonicMs() - event.publishedMs)
    if (event.arrivals >= this.#subscriptions) this.#onTheirWay.delete(eventId)
  }

  /** Of the whole run, as far as it is remembered. */
  latency(): Latency {
    return percentiles(this.#samplesMs)
  }

  /** Of the last moments: what a start with cold connections costs is soon out of it. */
  recentLatency(): Latency {
    const first = this.#nextSample - RECENT_SAMPLES
    const wrapped = first < 0 ? this.#samplesMs.slice(first + MOST_SAMPLES) : []
    return percentiles([...wrapped, ...this.#samplesMs.slice(Math.max(0, first), this.#nextSample)])
  }

  #sample(ms: number): void {
    this.#samplesMs[this.#nextSample] = ms
    this.#nextSample = (this.#nextSample + 1) % MOST_SAMPLES
  }
}

function percentiles(samples: readonly number[]): Latency {
  const sorted = samples.toSorted((one, other) => one - other)
  const at = (share: number): number | null => sorted[Math.floor((sorted.length - 1) * share)] ?? null
  return { p50: at(0.5), p99: at(0.99) }
}
