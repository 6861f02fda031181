import type { ClaimedDelivery } from '../delivery/delivery.ts'

/** The consumer's side of once, inside the handler's own transaction. */
export interface InboxStore<Tx> {
  /** Records the event for this subscription. False when it was recorded before: the effect has happened. */
  recordOnce(tx: Tx, subscription: string, eventId: string): Promise<boolean>
  /** Makes the delivery DONE inside the handler's transaction. Throws LeaseLostError, which rolls it back. */
  completeInTransaction(tx: Tx, delivery: ClaimedDelivery): Promise<void>
}
