import { UnknownOutcomeError } from '../runtime/errors.ts'
import { isInstance, property } from '../runtime/property.ts'
import { sqlState } from '../runtime/sql-state.ts'

const TRANSIENT: ReadonlySet<unknown> = new Set(['40001', '40P01'])
const LONGEST_CAUSE_CHAIN = 5

/** Whether the work may run again: a serialization failure or a deadlock. It may have wrapped the driver's error. */
export function isTransient(error: unknown): boolean {
  if (isInstance(error, UnknownOutcomeError)) return false
  let cause = error
  for (let depth = 0; depth < LONGEST_CAUSE_CHAIN && cause !== undefined && cause !== null; depth += 1) {
    if (TRANSIENT.has(property(cause, 'code'))) return true
    cause = property(cause, 'cause')
  }
  return false
}

// A server that goes away, or fails inside, may have committed before it said so.
const AMBIGUOUS_SQLSTATE = /^(08|57P0|58|XX)/

/** True when the server itself answered that the commit failed: then nothing was committed. */
export function isAnswer(error: unknown): boolean {
  const code = sqlState(error)
  return code !== null && !AMBIGUOUS_SQLSTATE.test(code)
}
