import type { ClaimedDelivery, Settlement } from '../../src/delivery/delivery.ts'
import type { HeldLane, LaneDelivery } from '../../src/store/queue-store.ts'
import type { WorkerStore } from '../../src/store/store.ts'
import type { Identity } from '../chaos/checker/entry.ts'
import type { SteppingPool } from '../hazards/stepping-pool.ts'
import { claimAlone, DONE, LEASE_MS, settled, takeLanes } from '../store/contract/helpers.ts'
import type { Run } from '../support/journal.ts'
import type { Trial } from './trial.ts'

/** More than any of these scenarios needs: what is still there then is stuck. */
const MOST_ROUNDS = 12

/** What an actor is made of. */
export interface ActorParts {
  readonly id: string
  readonly store: WorkerStore
  readonly pool: SteppingPool
  readonly trial: Trial
}

/** A worker by hand: the real store, and every step written in the test. */
export class Actor {
  readonly id: string
  readonly store: WorkerStore
  readonly pool: SteppingPool
  /** What it does with each delivery as soon as it has claimed it. */
  onClaimed: (delivery: ClaimedDelivery) => Promise<void> = async () => {}
  lanes: readonly HeldLane[] = []
  readonly #trial: Trial

  constructor({ id, store, pool, trial }: ActorParts) {
    this.id = id
    this.store = store
    this.pool = pool
    this.#trial = trial
  }

  /** Takes what there is and may be taken: rows, or rows of its lanes. */
  async claim(limit = 10): Promise<readonly ClaimedDelivery[]> {
    const request = { subscriptionId: this.#trial.sub.id, workerId: this.id, limit, leaseMs: LEASE_MS }
    const claimed =
      this.#trial.order === 'none'
        ? await this.store.claim(request)
        : await this.store.claimLanes({ ...request, lanes: this.lanes })
    for (const delivery of claimed) await this.onClaimed(delivery)
    return claimed
  }

  /** The first of what it claims. */
  async claimOne(): Promise<ClaimedDelivery> {
    const [delivery] = await this.claim(1)
    if (delivery === undefined) throw new Error(`${this.id} found nothing to claim`)
    return delivery
  }

  /** The first suspect there is, alone. */
  async claimSuspect(): Promise<LaneDelivery | null> {
    const request = { subscriptionId: this.#trial.sub.id, workerId: this.id, leaseMs: LEASE_MS }
    return claimAlone(this.store, { ...request, lanes: this.lanes })
  }

  /** Announces itself and takes the lanes that are free. */
  async takeLanes(): Promise<void> {
    if (this.#trial.order === 'none') return
    const taken = await takeLanes(this.store, this.#trial.sub, this.id, this.lanes)
    this.lanes = [...this.lanes, ...taken]
  }

  /** The handler begins. */
  begin({ event, attempt }: ClaimedDelivery): Run {
    const { sequence } = event
    return this.#trial.journal.seen(identityOf(event), { worker: this.id, attempt, sequence })
  }

  /** Writes down how it ended. */
  async settle(delivery: ClaimedDelivery, settlement: Settlement): Promise<void> {
    await this.store.settle([settled(delivery, settlement)])
  }

  /** Runs it to a good end, and lets go what waited for it. */
  async run(delivery: ClaimedDelivery): Promise<void> {
    this.begin(delivery).done()
    await this.settle(delivery, DONE)
    const { subscriptionId, lane, event } = delivery
    if (this.#trial.order === 'none') return
    await this.store.unpark(subscriptionId, [{ lane, key: event.orderingKey, most: 100 }])
  }

  /** Does everything there is to do, as a worker would. */
  async drain(): Promise<void> {
    for (let round = 0, found = 1; found > 0 && round < MOST_ROUNDS; round += 1) {
      await this.#trial.passTime()
      await this.store.recover([this.#trial.sub.id], this.id)
      await this.takeLanes()
      const suspect = await this.claimSuspect()
      const deliveries = suspect === null ? await this.claim() : [suspect]
      for (const delivery of deliveries) await this.run(delivery)
      found = deliveries.length
    }
  }
}

/** The event as a handler sees it. */
export function identityOf(event: ClaimedDelivery['event']): Identity {
  return {
    eventId: event.eventId,
    type: event.type,
    key: event.aggregateId,
    digest: JSON.stringify(event.payload),
  }
}
