import type { ClaimedDelivery, Settled, Settlement } from '../delivery/delivery.ts'
import { RELEASE_NOW } from '../delivery/settlements.ts'
import { keyText } from '../queue/hand.ts'
import { LeaseLostError } from '../runtime/errors.ts'
import type { SettleReport } from '../store/queue-store.ts'
import type { WorkerStore } from '../store/store.ts'
import { lockedError, notHeldError } from './repository-errors.ts'

type Settling = Pick<WorkerStore, 'settle'>

/** What a repository has found and not marked yet, by event id, and what has to go back. */
export class RepositoryHand {
  readonly #subscription: string
  readonly #held = new Map<string, ClaimedDelivery>()
  /** Taken, but not handed out: a try to give it back may have failed. */
  readonly #goingBack = new Set<ClaimedDelivery>()
  /** What tries that had no answer may have made of a delivery for good. */
  readonly #unanswered = new WeakMap<ClaimedDelivery, Set<Settlement['kind']>>()

  constructor(subscription: string) {
    this.#subscription = subscription
  }

  /** Takes in what is handed out. */
  take(deliveries: readonly ClaimedDelivery[]): void {
    for (const delivery of deliveries) this.#held.set(delivery.event.eventId, delivery)
  }

  /** Whether this very delivery is still held. */
  has(delivery: ClaimedDelivery): boolean {
    return this.#held.get(delivery.event.eventId) === delivery
  }

  /** Whether another event than this one is held. */
  hasBeside({ event }: ClaimedDelivery): boolean {
    return this.#held.size > Number(this.#held.has(event.eventId))
  }

  /** Notes that it goes back unless it is kept after all: whatever throws until then, it is not forgotten. */
  goesBack(delivery: ClaimedDelivery): void {
    this.#goingBack.add(delivery)
  }

  /** It does not go back. */
  keeps(delivery: ClaimedDelivery): void {
    this.#goingBack.delete(delivery)
  }

  /** Gives back what has to go back, as far as it can: the rest goes the next time, or comes back when its lease ends. */
  async offerBack(store: Settling): Promise<void> {
    await this.#giveBack(store).catch(() => undefined)
  }

  /** Gives everything back. */
  async giveBackAll(store: Settling): Promise<void> {
    for (const delivery of this.#held.values()) this.#goingBack.add(delivery)
    this.#held.clear()
    await this.#giveBack(store)
  }

  /** Writes down what became of these. Throws for the first of which nothing was written. */
  async mark(
    store: Settling,
    ids: readonly string[],
    settlementOf: (delivery: ClaimedDelivery) => Settlement,
  ): Promise<void> {
    const notHeld = ids.find((id) => !this.#held.has(id))
    const held = ids.flatMap((id) => this.#held.get(id) ?? [])
    const batch = held.map((delivery) => ({ delivery, settlement: settlementOf(delivery), durationMs: 0 }))
    const { lost, over, busy } = await this.#settle(store, batch)
    const locked = new Set(busy.map(({ delivery }) => delivery))
    for (const delivery of held) if (!locked.has(delivery)) this.#drop(delivery)
    if (locked.size > 0) throw lockedError([...locked].map(({ event }) => event.eventId))
    if (notHeld !== undefined) throw notHeldError(notHeld, this.#subscription)
    const [lostKeys, overKeys] = [new Set(lost.map(keyText)), new Set(over.map(keyText))]
    const gone = batch.find(({ delivery, settlement }) => {
      const isWritten = overKeys.has(keyText(delivery)) && this.#mayHaveWritten(delivery, settlement)
      return lostKeys.has(keyText(delivery)) && !isWritten
    })
    if (gone === undefined) return
    const { eventId } = gone.delivery.event
    throw new LeaseLostError({ eventId, subscription: this.#subscription })
  }

  async #giveBack(store: Settling): Promise<void> {
    if (this.#goingBack.size === 0) return
    const batch = [...this.#goingBack].map(released)
    const { busy } = await store.settle(batch)
    const locked = new Set(busy.map(({ delivery }) => delivery))
    for (const { delivery } of batch) if (!locked.has(delivery)) this.#goingBack.delete(delivery)
  }

  async #settle(store: Settling, batch: readonly Settled[]): Promise<SettleReport> {
    try {
      return await store.settle(batch)
    } catch (error) {
      // Some of it may be written, or all.
      for (const { delivery, settlement } of batch) this.#noAnswer(delivery, settlement)
      throw error
    }
  }

  #noAnswer(delivery: ClaimedDelivery, { kind }: Settlement): void {
    // Of what is PENDING again nobody can tell who gave it back.
    if (kind !== 'done' && kind !== 'dead') return
    const kinds = this.#unanswered.get(delivery)
    if (kinds === undefined) this.#unanswered.set(delivery, new Set([kind]))
    else kinds.add(kind)
  }

  /** Whether an earlier try without an answer may have written just this. */
  #mayHaveWritten(delivery: ClaimedDelivery, { kind }: Settlement): boolean {
    const kinds = this.#unanswered.get(delivery)
    return kinds?.size === 1 && kinds.has(kind)
  }

  /** Unless it was found again meanwhile: then that is another lease. */
  #drop(delivery: ClaimedDelivery): void {
    if (this.has(delivery)) this.#held.delete(delivery.event.eventId)
  }
}

function released(delivery: ClaimedDelivery): Settled {
  return { delivery, settlement: RELEASE_NOW, durationMs: 0 }
}
