import type { DeliveryStatus } from '../delivery/delivery.ts'
import type { OpenTransaction } from '../delivery/open-transaction.ts'

/** How one subscription stands. */
export interface SubscriptionStatus {
  readonly name: string
  readonly state: 'joining' | 'active' | 'retired'
  readonly paused: boolean
  readonly orderBy: string
  /** Deliveries; among PENDING also events that a subscription which reads the log is not past after ten seconds. */
  readonly counts: Readonly<Record<DeliveryStatus, number>>
  /** More may be PENDING than is counted: what waits in the log is counted up to 100,000 events. */
  readonly pendingCapped: boolean
  /** PENDING deliveries that have failed or were returned at least once. */
  readonly retrying: number
  /** Seconds since the oldest that is PENDING was made or re-driven, or null when nothing is pending. */
  readonly oldestPendingSeconds: number | null
  readonly unresolvedDeadLetters: number
  /** While it is joining: the oldest transaction that it waits for. Null when it waits for none. */
  readonly waitsFor: OpenTransaction | null
}

/** A name that a subscription has or had. */
export interface KnownSubscription {
  readonly name: string
  /** True where none has it now. */
  readonly retired: boolean
}

/** The read model for the command line and the demo. */
export interface InspectStore {
  subscriptionStatuses(): Promise<readonly SubscriptionStatus[]>
  /** The name of every subscription that there is or was, at the cost of a small table. */
  knownSubscriptions(): Promise<readonly KnownSubscription[]>
  countEvents(): Promise<number>
}
