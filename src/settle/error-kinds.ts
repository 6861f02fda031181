import type { RetryAdvice } from '../delivery/delivery.ts'
import type { CommitpostErrorCode } from '../runtime/error-codes.ts'
import { CommitpostError, RetryLaterError } from '../runtime/errors.ts'
import { isInstance, property, textProperty } from '../runtime/property.ts'
import { isSqlState } from '../runtime/sql-state.ts'

const BY_POLICY: RetryAdvice = { kind: 'by-policy' }
const NEVER: RetryAdvice = { kind: 'never' }

/** What the same code will always fail at: only a change of the code or of the data helps, then a re-drive. */
const NEVER_CODES: ReadonlySet<CommitpostErrorCode> = new Set<CommitpostErrorCode>([
  'NON_RETRYABLE',
  'INVALID_OPTIONS',
  'INVALID_EVENT',
  'NO_HANDLER',
  'UNKNOWN_EVENT_TYPE',
  'EVENT_REFUSED',
  'PAYLOAD_INVALID',
  'PAYLOAD_NOT_STORABLE',
  'PAYLOAD_TOO_LARGE',
  'UPCAST_FAILED',
  'NOT_IN_TRANSACTION',
])

/** Our own errors. Also by code alone: two copies of the package in one process do not share classes. */
export function adviceOfOwn(error: unknown): RetryAdvice | null {
  if (isInstance(error, RetryLaterError)) return { kind: 'after', delayMs: error.afterMs }
  const code = textProperty(error, 'code')
  if (code === 'RETRY_LATER') {
    const afterMs = property(error, 'afterMs')
    return typeof afterMs === 'number' && afterMs >= 0 ? { kind: 'after', delayMs: afterMs } : BY_POLICY
  }
  if (code !== undefined && (NEVER_CODES as ReadonlySet<string>).has(code)) return NEVER
  return isInstance(error, CommitpostError) ? BY_POLICY : null
}

const VALIDATION_NAMES: ReadonlySet<string> = new Set([
  'ZodError',
  '$ZodError',
  'ValidationError',
  'ValiError',
  'ArkErrors',
  'ArkError',
  'TraversalError',
  'SchemaError',
  'StandardSchemaError',
])

/** Validation libraries by name, and anything that lists issues as Standard Schema does. */
export function adviceOfValidation(error: unknown): RetryAdvice | null {
  const name = textProperty(error, 'name')
  if (name !== undefined && VALIDATION_NAMES.has(name)) return NEVER
  const issues = property(error, 'issues')
  const listsIssues = Array.isArray(issues) && textProperty(issues[0], 'message') !== undefined
  return listsIssues ? NEVER : null
}

/**
 * SQLSTATE of PostgreSQL (`code`) and of MySQL and MariaDB (`sqlState`). Class 22, data that does not fit, never
 * heals. Class 23, broken constraints, may: a duplicate key is often a race, and the second try then finds the row.
 */
export function adviceOfDatabase(error: unknown): RetryAdvice | null {
  const state = textProperty(error, 'sqlState') ?? textProperty(error, 'code')
  if (!isSqlState(state)) return null
  if (state.startsWith('22')) return NEVER
  const isRetryable = /^(?:08|23|25|40|53|55|57)/.test(state)
  return isRetryable ? BY_POLICY : null
}

const NETWORK_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'EAI_AGAIN',
  'EAI_FAIL',
  'ENOTFOUND',
  'EPIPE',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EMFILE',
  'ENFILE',
  'PROTOCOL_CONNECTION_LOST',
])

/** Sockets, DNS, undici, aborts and timeouts: the destination may be back next time. */
export function adviceOfNetwork(error: unknown): RetryAdvice | null {
  const code = textProperty(error, 'code')
  if (code !== undefined && (NETWORK_CODES.has(code) || code.startsWith('UND_ERR_'))) return BY_POLICY
  const name = textProperty(error, 'name')
  return name === 'AbortError' || name === 'TimeoutError' ? BY_POLICY : null
}
