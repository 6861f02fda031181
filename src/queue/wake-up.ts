import type { Clock } from '../runtime/clock.ts'

// Without one, every abort makes an exception with a stack, which costs more than the wait it ends.
const NO_REASON = null

/**
 * A bell with memory. Ringing it any number of times ends at most one wait: the one under way, or the next.
 */
export class WakeUp {
  readonly #clock: Clock
  #rung = false
  #end: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Ends the wait under way, or the next one before it begins. */
  wake(): void {
    this.#rung = true
    this.#end?.()
  }

  /** Forgets earlier rings: what they announced is about to be looked for. */
  forget(): void {
    this.#rung = false
  }

  /** Waits for the bell, for so long at most, and no longer than until the signal aborts. True if the bell rang. */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#rung && !signal.aborted && ms > 0) await this.#sleep(ms, signal)
    const rung = this.#rung
    this.#rung = false
    return rung
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const rung = new AbortController()
    const end = (): void => rung.abort(NO_REASON)
    signal.addEventListener('abort', end, { once: true })
    this.#end = end
    await (ms === Number.POSITIVE_INFINITY ? aborted(rung.signal) : this.#clock.sleep(ms, rung.signal))
    this.#end = null
    signal.removeEventListener('abort', end)
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
