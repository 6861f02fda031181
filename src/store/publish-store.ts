import type { NewEvent } from '../event/event.ts'
import type { BeginWith } from './deferred-begin.ts'
import type { CommitWith } from './transaction-tail.ts'

/** What to do with an event whose id is in the outbox already. */
export type OnDuplicate = 'error' | 'ignore'

/** How events are written. */
export interface InsertOptions {
  readonly onDuplicate: OnDuplicate
  /**
   * True: may be sent as late as with COMMIT, where that is ours, so its error is thrown there.
   * @default false
   */
  readonly mayBeKeptBack?: boolean
}

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
    options: InsertOptions,
  ): Promise<{ readonly inserted: number }>
  /**
   * Resolves when a transaction is open on this handle.
   * @throws NotInTransactionError naming the operation when none is: what is written now could not be atomic with
   * anything.
   */
  assertInTransaction(tx: Tx, operation?: string): Promise<void>
  /** The way to send something in one write with COMMIT on a client; null, or no such method, where there is none. */
  commitWith?(client: object): CommitWith | null
  /** The way to send BEGIN and a statement in one write on a client; null, or no such method, where there is none. */
  beginWith?(client: object): BeginWith | null
}
