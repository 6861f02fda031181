import type { Clock } from '../runtime/clock.ts'
import type { GaugeLimits, GaugeStore, Gauges } from '../store/gauge-store.ts'

/** What the last look at the tables came to. */
export interface Collection {
  /** Null when the database could not be read, or not in time. */
  readonly gauges: Gauges | null
  readonly durationMs: number
}

/** How often the tables may be looked at, and how much that may cost. */
export interface CollectorOptions {
  readonly store: GaugeStore
  readonly clock: Clock
  readonly limits: GaugeLimits
  /** How long a collection is good for. */
  readonly cacheMs: number
}

/** After a collection the database is left alone for so many times as long as it took, and at least `cacheMs`. */
const REST = 10

/**
 * Reads the gauges, one collection at a time whoever asks, and answers from memory in between. A database that is slow
 * is asked less often, so that looking at it never takes more than a small share of its time; one that does not answer
 * makes nobody wait longer than the time-out.
 */
export class GaugeCollector {
  readonly #options: CollectorOptions
  #running: Promise<Collection> | null = null
  #last: Collection | null = null
  #notBeforeMs = Number.NEGATIVE_INFINITY

  constructor(options: CollectorOptions) {
    this.#options = options
  }

  /** The latest collection. Never rejects. */
  async collect(): Promise<Collection> {
    const { clock, limits } = this.#options
    if (this.#last !== null && clock.monotonicMs() < this.#notBeforeMs) return this.#last
    this.#running ??= this.#read().finally(() => {
      this.#running = null
    })
    const answered = new AbortController()
    const late = clock
      .sleep(limits.timeoutMs, answered.signal)
      .then((): Collection => ({ gauges: null, durationMs: limits.timeoutMs }))
    try {
      return await Promise.race([this.#running, late])
    } finally {
      answered.abort()
    }
  }

  async #read(): Promise<Collection> {
    const { store, clock, limits, cacheMs } = this.#options
    const startedMs = clock.monotonicMs()
    const gauges = await store.readGauges(limits).catch(() => null)
    const endedMs = clock.monotonicMs()
    const durationMs = endedMs - startedMs
    this.#notBeforeMs = endedMs + Math.max(cacheMs, durationMs * REST)
    this.#last = { gauges, durationMs }
    return this.#last
  }
}
