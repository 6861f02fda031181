import type { ClaimedDelivery, Lease } from '../../delivery/delivery.ts'

/**
 * How much of each claim of one worker is not settled. What was lost counts as not settled: only whoever looks at the rows
 * of a claim may say that nothing of it is left.
 */
export class LeaseBook {
  // The deliveries of one claim share their lease. It is forgotten with the last of them.
  readonly #unsettled = new WeakMap<Lease, number>()

  /** Those counted one by one: whoever offers a result again may hear again that its handler had committed it. */
  readonly #counted = new WeakSet<ClaimedDelivery>()

  /** Takes note of what a claim brought. */
  opened(deliveries: readonly ClaimedDelivery[]): void {
    for (const { lease } of deliveries) this.#unsettled.set(lease, (this.#unsettled.get(lease) ?? 0) + 1)
  }

  /** Takes note that the database settled so many. True when nothing is left. */
  settled(lease: Lease, count: number): boolean {
    const unsettled = this.#unsettled.get(lease)
    if (unsettled === undefined) return false
    this.#unsettled.set(lease, unsettled - count)
    return unsettled === count
  }

  /** Takes note that this one is settled, whoever did it. True when nothing is left. */
  settledOne(delivery: ClaimedDelivery): boolean {
    if (this.#counted.has(delivery)) return false
    this.#counted.add(delivery)
    return this.settled(delivery.lease, 1)
  }

  /** Whether so many are all that is left. */
  areLast(lease: Lease, count: number): boolean {
    return this.#unsettled.get(lease) === count
  }

  /** How many of a claim were not seen to be settled. */
  unsettled(lease: Lease): number {
    return this.#unsettled.get(lease) ?? 0
  }
}
