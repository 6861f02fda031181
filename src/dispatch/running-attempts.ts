import type { Clock } from '../runtime/clock.ts'
import type { Attempt, DispatchedDelivery } from './attempt.ts'

/** What to watch for. */
export interface WatchOptions<Delivery extends DispatchedDelivery> {
  readonly clock: Clock
  /** Null watches nothing: attempts may run for ever. */
  readonly timeoutMs: number | null
  onTimeout(attempt: Attempt<Delivery>): void
}

const SHORTEST_TICK_MS = 5
const LONGEST_TICK_MS = 1_000
const TICKS_PER_TIMEOUT = 20

/**
 * The attempts whose handlers have not come back yet, in the order they began.
 *
 * One timer for all of them, not one each: it ticks while something is running, and adding or removing an attempt
 * only moves two pointers. A timeout is found at most one tick (5 % of it, a second at most) late.
 */
export class RunningAttempts<Delivery extends DispatchedDelivery> {
  readonly #options: WatchOptions<Delivery>
  readonly #tickMs: number
  #first: Attempt<Delivery> | null = null
  #last: Attempt<Delivery> | null = null
  #count = 0
  #ticking = false

  constructor(options: WatchOptions<Delivery>) {
    this.#options = options
    const share = (options.timeoutMs ?? 0) / TICKS_PER_TIMEOUT
    this.#tickMs = Math.min(Math.max(SHORTEST_TICK_MS, share), LONGEST_TICK_MS)
  }

  /** How many are running. */
  get count(): number {
    return this.#count
  }

  /** Puts an attempt at the end of the list; its time starts now. */
  add(attempt: Attempt<Delivery>): void {
    attempt.startedMs = this.#options.clock.monotonicMs()
    attempt.previous = this.#last
    if (this.#last === null) this.#first = attempt
    else this.#last.next = attempt
    this.#last = attempt
    this.#count += 1
    if (!this.#ticking && this.#options.timeoutMs !== null) void this.#tick(this.#options.timeoutMs)
  }

  /** Takes an attempt out of the list. Each one that was added must be removed once. */
  remove(attempt: Attempt<Delivery>): void {
    if (attempt.previous === null) this.#first = attempt.next
    else attempt.previous.next = attempt.next
    if (attempt.next === null) this.#last = attempt.previous
    else attempt.next.previous = attempt.previous
    attempt.previous = null
    attempt.next = null
    this.#count -= 1
  }

  /** Those running now, as a list of its own: callers may remove while they walk it. */
  all(): readonly Attempt<Delivery>[] {
    const attempts: Attempt<Delivery>[] = []
    for (let attempt = this.#first; attempt !== null; attempt = attempt.next) attempts.push(attempt)
    return attempts
  }

  // Never disarmed early: a timer left alone costs less than one cancelled and set again for every event.
  async #tick(timeoutMs: number): Promise<void> {
    this.#ticking = true
    while (this.#first !== null) {
      await this.#options.clock.sleep(this.#tickMs)
      this.#sweep(timeoutMs)
    }
    this.#ticking = false
  }

  #sweep(timeoutMs: number): void {
    const startedBeforeMs = this.#options.clock.monotonicMs() - timeoutMs
    // All share one timeout, so the list is in order of deadlines: stop at the first that has time left.
    while (this.#first !== null && this.#first.startedMs <= startedBeforeMs) {
      const attempt = this.#first
      this.remove(attempt)
      this.#options.onTimeout(attempt)
    }
  }
}
