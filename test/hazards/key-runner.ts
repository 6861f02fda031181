import type { Settlement } from '../../src/delivery/delivery.ts'
import type { HeldLane, LaneDelivery } from '../../src/store/queue-store.ts'
import type { WorkerStore } from '../../src/store/store.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { beat, LEASE_MS, settled, unpark } from '../store/contract/helpers.ts'

/** What a runner is made of. */
export interface KeyRunnerParts {
  readonly store: WorkerStore
  readonly sub: RegisteredSubscription
  readonly onDead: 'block' | 'continue'
  /** How an attempt ends. */
  handle(delivery: LaneDelivery): Settlement | Promise<Settlement>
}

/** The least a worker has to do to keep order: of each key one after the other, and after a failure no more of it. */
export class KeyRunner {
  readonly #parts: KeyRunnerParts
  #lanes: readonly HeldLane[] = []

  constructor(parts: KeyRunnerParts) {
    this.#parts = parts
  }

  /** Takes lanes, claims once and runs what it got. Returns how much that was. */
  async round(limit: number): Promise<number> {
    await this.takeLanes()
    return this.claimAndRun(limit)
  }

  /** Takes what lanes there are, and with that lets go what is parked behind nothing. */
  async takeLanes(): Promise<void> {
    const { store, sub } = this.#parts
    await beat(store, sub, 'w', [], this.#lanes)
    const request = { subscriptionId: sub.id, workerId: 'w', leaseMs: LEASE_MS, held: this.#lanes }
    this.#lanes = [...this.#lanes, ...(await store.takeLanes(request)).taken]
  }

  async claimAndRun(limit: number): Promise<number> {
    const { store, sub } = this.#parts
    const lanes = this.#lanes
    const claimed = await store.claimLanes({
      subscriptionId: sub.id,
      workerId: 'w',
      limit,
      leaseMs: LEASE_MS,
      lanes,
    })
    const stopped = new Set<string>()
    for (const delivery of claimed) await this.#run(delivery, stopped)
    return claimed.length
  }

  async #run(delivery: LaneDelivery, stopped: Set<string>): Promise<void> {
    const { store, sub, onDead } = this.#parts
    const { key } = delivery
    const settlement = stopped.has(key) ? { kind: 'park' as const } : await this.#parts.handle(delivery)
    await store.settle([settled(delivery, settlement)])
    const goesOn = settlement.kind === 'done' || (settlement.kind === 'dead' && onDead === 'continue')
    if (!goesOn) stopped.add(key)
    else if (delivery.wasHeld) await unpark(store, sub, [delivery])
  }
}
