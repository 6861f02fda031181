import { CommitpostError, NotInTransactionError } from '../../runtime/errors.ts'
import { property } from '../../runtime/property.ts'
import type { Transaction } from '../transaction.ts'
import { isToBegin } from '../transaction-tail.ts'
import { driverErrorOf } from './driver-error.ts'

// LOCK TABLE is refused outside a transaction block (25P01). Of a view that everybody may read and nothing ever locks
// against: the outbox's own table would need a right on the whole table, and publishers have INSERT on some columns.
const probeSql = 'lock table pg_catalog.pg_settings in access share mode'

/**
 * Resolves when a transaction is open on this client. Free where the client knows of one (recent versions of `pg`),
 * otherwise one statement.
 */
export async function assertInTransaction(tx: Transaction, operation = 'publish'): Promise<void> {
  if (typeof property(tx, 'query') !== 'function') {
    throw new NotInTransactionError(operation, { cannotQuery: true })
  }
  if (isToBegin(tx)) return
  switch (reportedStatus(tx)) {
    case 'T':
      return
    case 'E':
      throw abortedTransaction(operation)
    default:
      // Idle included: behind a wrapper may be a client of ours, on which this is the first statement and BEGIN goes before it.
      await probe(tx, operation)
  }
}

/** What the server told the client with its last answer: idle, in a transaction, or in a failed one. */
function reportedStatus(tx: Transaction): unknown {
  // An error reaches the caller a moment before the status that goes with it: until then the old one is not trusted.
  if (property(tx, 'readyForQuery') === false) return undefined
  const method = property(tx, 'getTransactionStatus')
  return typeof method === 'function' ? method.call(tx) : undefined
}

async function probe(tx: Transaction, operation: string): Promise<void> {
  try {
    await tx.query(probeSql, [])
  } catch (cause) {
    const code = driverErrorOf(cause)?.code
    if (code === '25P01') throw new NotInTransactionError(operation, { cause })
    if (code === '25P02') throw abortedTransaction(operation, { cause })
    throw cause
  }
}

/** The error for an operation in a transaction that can only be rolled back. */
export function abortedTransaction(operation: string, options?: ErrorOptions): CommitpostError {
  return new CommitpostError(
    'TRANSACTION_ABORTED',
    `${operation} was called in a transaction that has already failed: an earlier statement was refused, so that nothing ` +
      'in it can be committed. Roll it back and run it again; put a savepoint around what may fail.',
    options,
  )
}
