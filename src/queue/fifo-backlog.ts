import type { ClaimedDelivery, Settlement } from '../delivery/delivery.ts'
import { RELEASE_NOW } from '../delivery/settlements.ts'
import type { Backlog, GivenBack, Losses } from './backlog.ts'
import type { Held } from './hand.ts'

/** First come, first served: for subscriptions without order. */
export class FifoBacklog<Delivery extends ClaimedDelivery = ClaimedDelivery> implements Backlog<Delivery> {
  #queue: Held<Delivery>[] = []
  // An index instead of shift(): taking the first of a long array must not move the rest.
  #first = 0
  #closed = false
  #claims = 0

  get ready(): number {
    return this.#queue.length - this.#first
  }

  claimSent(): number {
    this.#claims += 1
    return this.#claims
  }

  offer(batch: readonly Held<Delivery>[]): readonly GivenBack<Delivery>[] {
    if (this.#closed) return batch.map(release)
    // In place: an array that was left behind would hold what it held until the whole heap is searched.
    const ready = this.ready
    this.#queue.copyWithin(0, this.#first)
    this.#queue.length = ready
    this.#first = 0
    for (const held of batch) this.#queue.push(held)
    return []
  }

  next(): Held<Delivery> | null {
    const held = this.#queue[this.#first]
    if (held === undefined) return null
    this.#first += 1
    return held
  }

  adopt(suspects: readonly Held<Delivery>[]): readonly Held<Delivery>[] {
    return this.#closed ? [] : suspects
  }

  ended(): readonly GivenBack<Delivery>[] {
    return []
  }

  unwritten(): readonly GivenBack<Delivery>[] {
    return []
  }

  settled(): readonly GivenBack<Delivery>[] {
    return []
  }

  lose(lost: readonly Held<Delivery>[]): Losses<Delivery> {
    const gone = new Set(lost)
    const waiting = this.#queue.slice(this.#first)
    this.#queue = waiting.filter((held) => !gone.has(held))
    this.#first = 0
    return { dropped: waiting.filter((held) => gone.has(held)), givenBack: [] }
  }

  afterOutrun(settlement: Settlement): Settlement {
    return settlement
  }

  close(): readonly GivenBack<Delivery>[] {
    this.#closed = true
    const waiting = this.#queue.slice(this.#first)
    this.#queue = []
    this.#first = 0
    return waiting.map(release)
  }
}

function release<Delivery extends ClaimedDelivery>(held: Held<Delivery>): GivenBack<Delivery> {
  return { held, settlement: RELEASE_NOW }
}
