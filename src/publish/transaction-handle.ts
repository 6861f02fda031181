import { NotInTransactionError } from '../runtime/errors.ts'
import { property } from '../runtime/property.ts'

/**
 * Refuses what is certainly no transaction, before anything is written. A pool is the classic mistake: it has `query`
 * too, but every call may run on another connection, outside the caller's transaction. The other one is to leave the
 * transaction out; `call` tells how the call should have looked.
 */
export function assertTransactionHandle(tx: unknown, operation: string, call: () => string): void {
  if (!isObject(tx) || Array.isArray(tx)) throw new NotInTransactionError(operation, { call: call() })
  if (isPool(tx)) throw new NotInTransactionError(operation)
}

function isObject(tx: unknown): tx is object {
  return (typeof tx === 'object' || typeof tx === 'function') && tx !== null
}

// pg.Pool connects and counts its clients; a client connects too, but counts nothing. mysql2 pools hand out connections.
function isPool(handle: object): boolean {
  const counts =
    typeof property(handle, 'totalCount') === 'number' || typeof property(handle, 'idleCount') === 'number'
  if (counts && typeof property(handle, 'connect') === 'function') return true
  return typeof property(handle, 'getConnection') === 'function'
}
