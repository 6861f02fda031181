import type { Clock } from '../runtime/clock.ts'
import { Outage } from '../runtime/outage.ts'
import type { Random } from '../runtime/random.ts'
import { ClaimSize, type ClaimSizeOptions, type Load } from './claim-size.ts'
import { nextPollMs, type PollOptions } from './poll-interval.ts'
import { WakeUp } from './wake-up.ts'

/** When and how much to claim. */
export interface ClaimLoopOptions extends PollOptions, ClaimSizeOptions {
  /** How often the source is tended to while no claim is needed, in milliseconds. */
  readonly tendEveryMs: number
}

/** What a claim brought: how many, how much text that is, and whether those were all. */
export interface ClaimResult {
  readonly got: number
  readonly characters: number
  readonly isAll: boolean
}

/** What a loop of claims is made of. */
export interface ClaimLoopParts {
  readonly options: ClaimLoopOptions
  readonly clock: Clock
  readonly random: Random
  /** What has to be done between claims. */
  tend(): Promise<void>
  /** Claims at most so many and puts them to work. */
  claim(limit: number): Promise<ClaimResult>
  /** What is in hand now. */
  load(): Load
  /** Whether there is room by now for what the last claim had to leave out. */
  hasRoomAgain(): boolean
  /** How many handlers ended, and for how long any was running, since this was last asked. */
  takeSample(): { readonly ended: number; readonly busyMs: number }
  /** Told once per outage, while the tries go on. */
  onOutage(error: unknown): void
}

/** Claims ahead of the handlers, but not too far; waits when there is enough in hand, and polls when there is nothing. */
export class ClaimLoop {
  readonly #parts: ClaimLoopParts
  readonly #size: ClaimSize
  readonly #outage: Outage
  readonly #stop = new AbortController()
  readonly #news: WakeUp
  readonly #demand: WakeUp
  #awaitsDemand = false
  #pausing = false
  #emptyClaims = 0
  #ended: Promise<void> | null = null

  constructor(parts: ClaimLoopParts) {
    this.#parts = parts
    this.#size = new ClaimSize(parts.options)
    this.#outage = new Outage({ random: parts.random, onBegin: (error) => parts.onOutage(error) })
    this.#news = new WakeUp(parts.clock)
    this.#demand = new WakeUp(parts.clock)
  }

  /** Begins to claim. */
  start(): void {
    this.#ended ??= this.#run()
  }

  /** There may be new work: ends the pause between claims. A fixed period is not cut short. */
  wake(): void {
    if (this.#parts.options.drain) this.#news.wake()
  }

  /** Something in hand was taken or settled: there may be room for more. */
  loadChanged(): void {
    if (this.#awaitsDemand && this.#limit() > 0) this.#demand.wake()
  }

  /** Results are written: what the last claim had to leave out is asked for without waiting for the next poll. */
  settled(): void {
    if (this.#pausing && this.#parts.hasRoomAgain()) this.wake()
    this.loadChanged()
  }

  /** Claims no more. Resolves when no claim is under way. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await this.#parts.tend()
        await this.#claimOrWait()
        this.#outage.succeeded()
      } catch (error) {
        await this.#parts.clock.sleep(this.#outage.failed(error), this.#stop.signal)
      }
    }
  }

  async #claimOrWait(): Promise<void> {
    const { ended, busyMs } = this.#parts.takeSample()
    this.#size.worked(ended, busyMs)
    const limit = this.#limit()
    if (limit === 0) return this.#waitForDemand()
    // What was announced before this claim is sent is found by it; what is announced after must be looked for again.
    this.#news.forget()
    const { got, characters, isAll } = await this.#parts.claim(limit)
    this.#size.claimed(limit, got, characters)
    if (got > 0) this.#emptyClaims = 0
    // One that took all there was is as good as an empty one after it, which the next event would have to wait for.
    if (isAll) this.#emptyClaims += 1
    this.#pausing = true
    if (this.#parts.hasRoomAgain()) this.wake()
    await this.#pause(nextPollMs(this.#emptyClaims, this.#parts.options, this.#parts.random))
    this.#pausing = false
  }

  #limit(): number {
    return this.#size.next(this.#parts.load())
  }

  async #waitForDemand(): Promise<void> {
    this.#awaitsDemand = true
    this.#demand.forget()
    await this.#demand.wait(this.#parts.options.tendEveryMs, this.#stop.signal)
    this.#awaitsDemand = false
  }

  /** Pauses, but not from tending: a long poll must not cost the worker its lanes. */
  async #pause(ms: number): Promise<void> {
    const { clock, options } = this.#parts
    const untilMs = clock.monotonicMs() + ms
    for (let leftMs = ms; leftMs > 0; leftMs = untilMs - clock.monotonicMs()) {
      const rung = await this.#news.wait(Math.min(leftMs, options.tendEveryMs), this.#stop.signal)
      if (rung || this.#stop.signal.aborted) return
      if (leftMs > options.tendEveryMs) await this.#parts.tend()
    }
  }
}
