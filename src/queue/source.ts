import type { ClaimedDelivery } from '../delivery/delivery.ts'
import type { EventIdentity } from '../event/event.ts'
import type { Clock } from '../runtime/clock.ts'
import type { LaneDelivery, QueueStore } from '../store/queue-store.ts'
import type { LeaseTerm } from './hand.ts'

/** Who takes, and for how long. */
export interface TakerOptions {
  readonly subscriptionId: number
  readonly workerId: string
  readonly leaseMs: number
  /** Told once of a delivery that the database refuses to have claimed, and of its event unless that is gone. */
  readonly onRefused?: (refusal: Error, event: EventIdentity | null) => void
}

/** What a claim returned. */
export interface Taken<Delivery extends ClaimedDelivery> {
  readonly deliveries: readonly Delivery[]
  /** No lease of these began before this moment of the process's own clock. */
  readonly confirmedAtMs: number
  /** True if there was nothing more: to ask again at once would be in vain. */
  readonly isAll: boolean
}

/** A lane this worker owns, with the time its lease is good for. */
export interface OwnedLane {
  readonly lane: number
  readonly epoch: string
  readonly term: LeaseTerm
}

/** Where a runner's deliveries come from. */
export interface DeliverySource<Delivery extends ClaimedDelivery> {
  /** Called before every claim and now and then while none is needed: for what has to be done between claims. */
  tend(): Promise<void>
  /** Claims at most so many, more or less. */
  take(limit: number): Promise<Taken<Delivery>>
  /** Claims at most so many suspects. */
  takeSuspects(limit: number): Promise<Taken<LaneDelivery>>
  /** Whether there is room by now for what the last claim had to leave out. */
  hasRoomAgain(): boolean
  /** The lanes a heartbeat is to extend. */
  lanes(): readonly OwnedLane[]
  /** These lanes are somebody else's now. Returns the numbers of those that had not been lost or given back before. */
  loseLanes(lanes: readonly OwnedLane[]): readonly number[]
  /** The lanes whose lease no heartbeat has confirmed for too long; they count as lost from now on. */
  expireLanes(nowMs: number): readonly number[]
  /** Nothing is claimed any more. */
  close(): void
  /** Gives back lanes that nothing more is claimed of, as far as nothing of them is in hand. True if there were any. */
  giveBackIdle(): Promise<boolean>
  /** Gives everything back. Nothing is in hand any more. */
  leave(): Promise<void>
}

/** Claims of a subscription without order. */
export class UnorderedSource implements DeliverySource<ClaimedDelivery> {
  readonly #store: Pick<QueueStore, 'claim' | 'claimSuspects'>
  readonly #options: TakerOptions
  readonly #clock: Clock

  constructor(store: Pick<QueueStore, 'claim' | 'claimSuspects'>, options: TakerOptions, clock: Clock) {
    this.#store = store
    this.#options = options
    this.#clock = clock
  }

  async tend(): Promise<void> {}

  async take(limit: number): Promise<Taken<ClaimedDelivery>> {
    const confirmedAtMs = this.#clock.monotonicMs()
    const deliveries = await this.#store.claim({ ...this.#options, limit })
    return { deliveries, confirmedAtMs, isAll: deliveries.length < limit }
  }

  async takeSuspects(limit: number): Promise<Taken<LaneDelivery>> {
    const confirmedAtMs = this.#clock.monotonicMs()
    const deliveries = await this.#store.claimSuspects({ ...this.#options, limit })
    return { deliveries, confirmedAtMs, isAll: deliveries.length < limit }
  }

  hasRoomAgain(): boolean {
    return false
  }

  lanes(): readonly OwnedLane[] {
    return []
  }

  loseLanes(): readonly number[] {
    return []
  }

  expireLanes(): readonly number[] {
    return []
  }

  close(): void {}

  async giveBackIdle(): Promise<boolean> {
    return false
  }

  async leave(): Promise<void> {}
}
