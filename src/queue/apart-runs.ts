import type { ClaimedDelivery, DeliveryOutcome } from '../delivery/delivery.ts'
import { RELEASE_NOW, RELEASE_SOON } from '../delivery/settlements.ts'
import type { LaneDelivery } from '../store/queue-store.ts'
import type { GivenBack } from './backlog.ts'
import type { Held } from './hand.ts'
import type { Mutex } from './mutex.ts'
import type { RunnerParts } from './runner-parts.ts'

/** What runs suspects is made of. */
export interface ApartRunsParts<Delivery extends ClaimedDelivery> extends RunnerParts<Delivery> {
  /** One claim at a time, of whatever kind. */
  readonly taking: Mutex
  isStopping(): boolean
  giveBack(back: readonly GivenBack<Delivery>[]): void
  onClaimed(suspects: readonly ClaimedDelivery[], durationMs: number): void
  onEnded(held: Held<Delivery>, outcome: DeliveryOutcome, durationMs: number): void
  /** Told after each that none may be running any more. */
  onIdle(): void
}

/** Claims the suspects of a subscription and runs them, apart from all else. */
export class ApartRuns<Delivery extends ClaimedDelivery> {
  readonly #parts: ApartRunsParts<Delivery>
  #running = 0

  constructor(parts: ApartRunsParts<Delivery>) {
    this.#parts = parts
  }

  /** How many are running. */
  get running(): number {
    return this.#running
  }

  /** Claims so many at most and runs them; the caller sees to it that nothing else runs. False when there was none. */
  async run(limit: number): Promise<boolean> {
    const { taken, adopted } = await this.#parts.taking.run(() => this.#take(limit))
    if (taken === 0) return false
    const [only] = adopted
    if (only === undefined || adopted.length > 1 || (await this.#markAlone(only))) {
      await Promise.all(adopted.map((held) => this.#run(held)))
    }
    await this.#parts.results.flush()
    return true
  }

  async #take(
    limit: number,
  ): Promise<{ readonly taken: number; readonly adopted: readonly Held<Delivery>[] }> {
    const { source, hand, backlog, clock } = this.#parts
    const claim = backlog.claimSent()
    const sentAtMs = clock.monotonicMs()
    const { deliveries, confirmedAtMs } = await source.takeSuspects(limit).catch((error: unknown) => {
      backlog.offer([], claim)
      throw error
    })
    // Of an unordered subscription they have a key of no meaning; of an ordered one they are the runner's own kind.
    const suspects = hand.take(deliveries as readonly (LaneDelivery & Delivery)[], confirmedAtMs)
    const taken = suspects.length
    if (taken > 0) this.#parts.onClaimed(deliveries, clock.monotonicMs() - sentAtMs)
    const adopted = backlog.adopt(suspects, claim)
    const notYet = suspects.filter((held) => !adopted.includes(held))
    const settlement = this.#parts.isStopping() ? RELEASE_NOW : RELEASE_SOON
    this.#parts.giveBack(notYet.map((held) => ({ held, settlement })))
    return { taken, adopted }
  }

  /** False if it may not run and goes back. One beside which others still run is not marked, and so not charged. */
  async #markAlone(held: Held<Delivery>): Promise<boolean> {
    const parts = this.#parts
    let mayRun = false
    try {
      mayRun = parts.hasStrays() || (await parts.markAlone(held.delivery))
      return mayRun
    } finally {
      if (!mayRun) {
        const behind = parts.backlog.ended(held, RELEASE_SOON, false)
        parts.giveBack([{ held, settlement: RELEASE_SOON }, ...behind])
      }
    }
  }

  async #run(held: Held<Delivery>): Promise<void> {
    const { handlers, clock } = this.#parts
    this.#running += 1
    const startedMs = clock.monotonicMs()
    const outcome = await handlers.dispatch(held.delivery)
    this.#running -= 1
    this.#parts.onEnded(held, outcome, clock.monotonicMs() - startedMs)
    this.#parts.onIdle()
  }
}
