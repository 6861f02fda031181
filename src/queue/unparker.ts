import type { Settlement } from '../delivery/delivery.ts'
import type { LaneDelivery, QueueStore } from '../store/queue-store.ts'
import type { Ended } from './report.ts'

/** Whether the later events of a key may go on after one ended so. */
export function letsKeyGoOn(settlement: Settlement, onDead: 'block' | 'continue'): boolean {
  return settlement.kind === 'done' || (settlement.kind === 'dead' && onDead === 'continue')
}

/** What an unparker is made of. */
export interface UnparkerParts {
  readonly store: Pick<QueueStore, 'unpark'>
  readonly subscriptionId: number
  readonly onDead: 'block' | 'continue'
  /** Told when parked events may be claimed again. */
  onUnparked(): void
  onError(error: unknown): void
}

/** Lets the parked events of a key go on once what they waited for is settled. */
export class Unparker {
  readonly #parts: UnparkerParts
  readonly #waiting = new Map<string, { readonly lane: number; readonly key: string }>()
  #running: Promise<void> | null = null

  constructor(parts: UnparkerParts) {
    this.#parts = parts
  }

  /** Takes note of what is written down. */
  settled(written: readonly Ended<LaneDelivery>[]): void {
    for (const { delivery, settlement } of written) {
      if (!delivery.wasHeld || !letsKeyGoOn(settlement, this.#parts.onDead)) continue
      this.#waiting.set(delivery.key, { lane: delivery.lane, key: delivery.key })
    }
    this.#start()
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
        await this.#parts.store.unpark(this.#parts.subscriptionId, keys)
        this.#parts.onUnparked()
      } catch (error) {
        // With the next settled one again; and recovery finds what is parked behind nothing.
        for (const key of keys) this.#waiting.set(key.key, key)
        this.#parts.onError(error)
        return
      }
    }
  }
}
