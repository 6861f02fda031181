import { NotInTransactionError } from '../runtime/errors.ts'
import { property } from '../runtime/property.ts'

/** What a statement gave back. */
export interface QueryResult {
  readonly rows: readonly unknown[]
  readonly rowCount: number | null
  /** The command the server says it ran, where the client tells: COMMIT in a failed transaction runs ROLLBACK. */
  readonly command?: string
}

/** A client inside a transaction, by shape: a `pg` client fits as it is, others through a few lines. */
export interface Transaction {
  query(text: string, params?: readonly unknown[]): Promise<QueryResult>
}

/**
 * Refuses what is certainly no transaction, before anything is written. A pool is the classic mistake: it has `query`
 * too, but every call may run on another connection, outside the caller's transaction.
 */
export function assertTransactionHandle(tx: unknown, operation: string): void {
  if ((typeof tx !== 'object' && typeof tx !== 'function') || tx === null || isPool(tx)) {
    throw new NotInTransactionError(operation)
  }
}

// pg.Pool connects and counts its clients; a client connects too, but counts nothing. mysql2 pools hand out connections.
function isPool(handle: object): boolean {
  const counts =
    typeof property(handle, 'totalCount') === 'number' || typeof property(handle, 'idleCount') === 'number'
  if (counts && typeof property(handle, 'connect') === 'function') return true
  return typeof property(handle, 'getConnection') === 'function'
}
