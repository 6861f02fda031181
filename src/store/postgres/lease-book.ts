import type { ClaimedDelivery, Lease } from '../../delivery/delivery.ts'

/** A claim of which something is in hand. */
export interface OpenLease {
  readonly subscriptionId: number
  readonly token: string
  /** How many of its deliveries were not seen to be settled. */
  readonly unsettled: number
}

/**
 * How much of each claim of one worker is not settled. What was lost counts as not settled: only whoever looks at the rows
 * of a claim may say that nothing of it is left.
 */
export class LeaseBook {
  // The deliveries of one claim share their lease. It is forgotten with the last of them.
  readonly #unsettled = new WeakMap<Lease, number>()

  /** Takes note of what a claim brought. */
  opened(deliveries: readonly ClaimedDelivery[]): void {
    for (const { lease } of deliveries) this.#unsettled.set(lease, (this.#unsettled.get(lease) ?? 0) + 1)
  }

  /** Takes note that so many were settled. True when they were the last. */
  settled(lease: Lease, count: number): boolean {
    const left = (this.#unsettled.get(lease) ?? Number.NaN) - count
    this.#unsettled.set(lease, left)
    return left === 0
  }

  /** Whether so many are all that is left. */
  areLast(lease: Lease, count: number): boolean {
    return this.#unsettled.get(lease) === count
  }

  /** The claims that these belong to. */
  open(deliveries: readonly ClaimedDelivery[]): readonly OpenLease[] {
    const leases = new Map(deliveries.map(({ lease, subscriptionId }) => [lease, subscriptionId]))
    return [...leases].map(([lease, subscriptionId]) => ({
      subscriptionId,
      token: lease.token,
      unsettled: this.#unsettled.get(lease) ?? 0,
    }))
  }
}
