import type { OutboxEvent } from '../../../src/event/event.ts'
import type { WorkerStore } from '../../../src/store/store.ts'

/** What a database has to offer to be put through the contract: nothing here says which one it is. */
export interface ContractHarness {
  /** A worker's view of an empty, migrated database. Each call has connections of its own. */
  worker(): WorkerStore
  /** Publishes events in one committed transaction, one aggregate id each. */
  publish(
    aggregateIds: readonly string[],
    options?: { readonly type?: string; readonly stream?: string },
  ): Promise<void>
  /** Begins a transaction that has published and is left open until it is told how to end. */
  publishOpen(
    aggregateIds: readonly string[],
  ): Promise<{ commit(): Promise<void>; rollback(): Promise<void> }>
  /** Lets the leases of a worker lapse, as if its time had passed on the database's clock. */
  lapse(workerId: string): Promise<void>
  /** Every delivery of a subscription, in position order. */
  deliveries(subscription: string): Promise<readonly ContractDelivery[]>
}

/** A delivery's row, as far as the contract speaks of it. */
export interface ContractDelivery {
  readonly position: string
  readonly aggregateId: OutboxEvent['aggregateId']
  readonly status: string
  readonly attempts: number
  readonly suspect: boolean
  readonly held: boolean
  readonly lockedBy: string | null
  readonly errorCode: string | null
}

/** One rule of the contract. */
export interface ContractCase {
  readonly name: string
  readonly run: (harness: ContractHarness) => Promise<void>
}
