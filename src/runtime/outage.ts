import { jittered } from './periodic.ts'
import type { Random } from './random.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000
const MOST_DOUBLINGS = 10
const JITTER = 0.3

/** Who is told of an outage, and what spreads the tries. */
export interface OutageOptions {
  readonly random: Random
  /** Told of the first failure of each outage, not of those that follow it. */
  onBegin(error: unknown): void
}

/** One loop's failures in a row: the first is reported, and each makes the pause before the next try longer. */
export class Outage {
  readonly #options: OutageOptions
  #failures = 0

  constructor(options: OutageOptions) {
    this.#options = options
  }

  /** Takes note of a failure. Returns how long to wait before trying again, in milliseconds: 100, 200 … 5,000. */
  failed(error: unknown): number {
    this.#failures += 1
    if (this.#failures === 1) this.#options.onBegin(error)
    const doublings = Math.min(this.#failures - 1, MOST_DOUBLINGS)
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** doublings)
    return jittered(pauseMs, JITTER, this.#options.random)
  }

  /** Takes note of a success: the next failure begins a new outage. */
  succeeded(): void {
    this.#failures = 0
  }
}
