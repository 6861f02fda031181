import type { NewEvent } from '../event/event.ts'

/** What to do with an event whose id is in the outbox already. */
export type OnDuplicate = 'error' | 'ignore'

/** What publishing needs of a database. `Tx` is whatever the caller's client calls a transaction. */
export interface PublishStore<Tx> {
  /**
   * Writes the events in the caller's transaction, in one statement unless they are very large, and in the given order. Never begins, commits or
   * rolls back. With `ignore`, events whose ids exist are left as they are, and `inserted` says how many were new.
   * @throws DuplicateEventError with `error`, naming the ids that exist where the database can tell.
   */
  insertEvents(
    tx: Tx,
    events: readonly NewEvent[],
    options: { readonly onDuplicate: OnDuplicate },
  ): Promise<{ readonly inserted: number }>
  /**
   * Resolves when a transaction is open on this handle.
   * @throws NotInTransactionError naming the operation when none is: what is written now could not be atomic with
   * anything.
   */
  assertInTransaction(tx: Tx, operation?: string): Promise<void>
}
