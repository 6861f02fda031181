import type { Settlement } from '../delivery/delivery.ts'
import type { LaneDelivery, ParkedKey, QueueStore } from '../store/queue-store.ts'
import type { Ended } from './report.ts'

/** Whether the later events of a key may go on after one ended so. */
export function letsKeyGoOn(settlement: Settlement, onDead: 'block' | 'continue'): boolean {
  return settlement.kind === 'done' || (settlement.kind === 'dead' && onDead === 'continue')
}

/** How many events of a key are let go at first. If one of them fails, those behind it are parked again. */
const FIRST_PORTION = 16

/** Of a key without failures every portion is twice the one before, up to this. */
const LARGEST_PORTION = 1_024

/** Beyond this the portions are forgotten: keys then begin small again. */
const MOST_KEYS = 10_000

/** What an unparker is made of. */
export interface UnparkerParts {
  readonly store: Pick<QueueStore, 'unpark'>
  readonly subscriptionId: number
  readonly onDead: 'block' | 'continue'
  /** How many events of a key wait here for their turn, or run. */
  countInHand(key: string): number
  /** Whether something of a key is on its way back, or could not be written. */
  isReturning(key: string): boolean
  /** Told when parked events may be claimed again. */
  onUnparked(): void
  onError(error: unknown): void
}

/**
 * Lets the parked events of a key go on once what they waited for is settled: a portion at a time, the next when half of
 * it is left. All at once, each failure of a busy key would park everything behind it and each success let it go.
 */
export class Unparker {
  readonly #parts: UnparkerParts
  readonly #waiting = new Map<string, ParkedKey>()
  /** How many of a key were last let go. */
  readonly #portions = new Map<string, number>()
  #running: Promise<void> | null = null

  constructor(parts: UnparkerParts) {
    this.#parts = parts
  }

  /** Takes note of what is written down. */
  settled(written: readonly Ended<LaneDelivery>[]): void {
    const stopped = new Set<string>()
    for (const ended of written) this.#ended(ended, stopped)
    this.#start()
  }

  #ended({ delivery, held, settlement }: Ended<LaneDelivery>, stopped: Set<string>): void {
    const { wasHeld, key } = delivery
    if (letsKeyGoOn(settlement, this.#parts.onDead)) {
      if (wasHeld || held.stoppedKey) this.#ask(delivery)
      return
    }
    this.#portions.delete(key)
    if (settlement.kind === 'park') {
      // Whoever let its key go on may have been written before it, and found nothing parked. Behind one that is written
      // with it and does not, it waits for that.
      if (!stopped.has(key) && !this.#parts.isReturning(key)) this.#ask(delivery)
      return
    }
    stopped.add(key)
    this.#waiting.delete(key)
  }

  #ask({ lane, key }: LaneDelivery): void {
    const last = this.#portions.get(key)
    // What is in hand is of the last portion, and the rest of it asks for more. Before the first it may be anything.
    if (last !== undefined && this.#parts.countInHand(key) > last / 2) return
    const most = last === undefined ? FIRST_PORTION : Math.min(last * 2, LARGEST_PORTION)
    this.#waiting.set(key, { lane, key, most })
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await this.#running
  }

  #start(): void {
    if (this.#running !== null || this.#waiting.size === 0) return
    this.#running = this.#run().finally(() => {
      this.#running = null
    })
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      const keys = [...this.#waiting.values()]
      this.#waiting.clear()
      try {
        const counts = await this.#parts.store.unpark(this.#parts.subscriptionId, keys)
        for (const key of keys) this.#letGo(key, counts.get(key.key) ?? 0)
        this.#parts.onUnparked()
      } catch (error) {
        // With the next settled one again; and recovery finds what is parked behind nothing.
        for (const key of keys) this.#waiting.set(key.key, key)
        this.#parts.onError(error)
        return
      }
    }
  }

  #letGo({ key, most }: ParkedKey, count: number): void {
    this.#portions.delete(key)
    if (count === 0) return
    if (this.#portions.size >= MOST_KEYS) this.#portions.clear()
    this.#portions.set(key, most)
  }
}
