import type { Clock } from '../runtime/clock.ts'

// Without one, every abort makes an exception with a stack, which costs more than the wait it ends.
const NO_REASON = null

/** The timer under way. */
interface Alarm {
  readonly atMs: number
  readonly signal: AbortSignal
  readonly off: AbortController
}

/**
 * A bell with memory. Ringing it any number of times ends at most one wait: the one under way, or the next.
 */
export class WakeUp {
  readonly #clock: Clock
  #rung = false
  #end: (() => void) | null = null
  #untilMs = 0
  #alarm: Alarm | null = null

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

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#end = () => {
        this.#end = null
        resolve()
      }
      this.#untilMs = this.#clock.monotonicMs() + ms
      this.#setAlarm(signal)
    })
  }

  // One that goes off too early is set again then. To end one with every ring, and to begin another with the next wait,
  // takes longer than all else between a notification and the claim that it asks for.
  #setAlarm(signal: AbortSignal): void {
    const atMs = this.#untilMs
    if (this.#alarm !== null && this.#alarm.atMs <= atMs && this.#alarm.signal === signal) return
    this.#alarm?.off.abort(NO_REASON)
    const alarm = { atMs, signal, off: new AbortController() }
    this.#alarm = alarm
    const ended = AbortSignal.any([signal, alarm.off.signal])
    void this.#clock.sleep(atMs - this.#clock.monotonicMs(), ended).then(() => this.#wentOff(alarm))
  }

  #wentOff(alarm: Alarm): void {
    if (this.#alarm !== alarm) return
    this.#alarm = null
    if (this.#end === null) return
    if (alarm.signal.aborted || this.#clock.monotonicMs() >= this.#untilMs) this.#end()
    else this.#setAlarm(alarm.signal)
  }
}
