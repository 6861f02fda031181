import { NotInTransactionError } from '../runtime/errors.ts'
import { property } from '../runtime/property.ts'

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
