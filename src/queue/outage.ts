import type { Observer } from '../observe/worker-events.ts'
import { jittered } from '../runtime/periodic.ts'
import type { Random } from '../runtime/random.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000
const JITTER = 0.3

/** What an outage is about and who is told. */
export interface OutageOptions {
  readonly during: string
  /** Null where it concerns the whole worker. */
  readonly subscription: string | null
  readonly observer: Observer
  readonly random: Random
}

/** One loop's failures in a row: the first is reported, and each makes the pause before the next try longer. */
export class Outage {
  readonly #options: OutageOptions
  #failures = 0

  constructor(options: OutageOptions) {
    this.#options = options
  }

  /** True between a failure and the next success. */
  get isUnderWay(): boolean {
    return this.#failures > 0
  }

  /** Takes note of a failure. Returns how long to wait before trying again, in milliseconds. */
  failed(error: unknown): number {
    const { during, subscription, observer, random } = this.#options
    this.#failures += 1
    if (this.#failures === 1) observer({ kind: 'error', during, error, subscription })
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures - 1, 10))
    return jittered(pauseMs, JITTER, random)
  }

  /** Takes note of a success: the next failure is a new outage. */
  succeeded(): void {
    this.#failures = 0
  }
}
