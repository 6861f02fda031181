import type { TupleEvent } from './tuple-event.ts'

/** Less than this part of what came, and what is kept of it is copied. */
const LEAST_PART = 1 / 2

/**
 * The events that are kept of one stretch of bytes. Each stays in those bytes and so keeps all of them in memory: that is
 * free where most of them are kept, and where few are they are moved out. So what is in memory is never much more than
 * what the events say that they take, whichever of them end first.
 */
export class KeptRows {
  #events: TupleEvent[] = []
  #bytes = 0

  add(event: TupleEvent): void {
    this.#events.push(event)
    this.#bytes += event.size
  }

  /** All events that are in these bytes were told: whatever comes next is in others. */
  ended(bytes: Buffer): void {
    if (this.#events.length === 0) return
    if (this.#bytes < bytes.length * LEAST_PART) this.#moveOut()
    this.#events = []
    this.#bytes = 0
  }

  #moveOut(): void {
    const own = Buffer.allocUnsafeSlow(this.#bytes)
    let at = 0
    for (const event of this.#events) {
      event.moveTo(own, at)
      at += event.size
    }
  }
}
