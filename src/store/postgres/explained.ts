import { CommitpostError } from '../../runtime/errors.ts'
import { SchemaMissingError } from '../../runtime/schema-errors.ts'
import { INSUFFICIENT_PRIVILEGE } from '../../runtime/sql-state.ts'
import { describeError } from '../../runtime/text.ts'
import { type DriverError, driverErrorOf } from './driver-error.ts'
import { plainName, type QuotedSchema } from './identifiers.ts'

/**
 * Does what was asked on connections of our own, and gives what the database or the network says against it a name
 * that a program can act on. Not for statements in a caller's transaction: there the driver's errors are the caller's,
 * who may be waiting for a 40001.
 */
export async function explained<Result>(
  schema: QuotedSchema,
  what: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw explanationOf(error, schema, what)
  }
}

/** The error for tables that are not there, or null when it says something else. */
export function schemaMissing(error: unknown, schema: QuotedSchema): SchemaMissingError | null {
  const found = driverErrorOf(error)
  return found !== null && isAboutOurTables(found)
    ? new SchemaMissingError(plainName(schema), { cause: error })
    : null
}

// No such table, schema or function. A trigger of somebody else's may miss a table of its own: ours are named.
function isAboutOurTables({ code, message }: DriverError): boolean {
  if (code === '3F000') return true
  return (code === '42P01' || code === '42883') && message.includes('outbox_')
}

// Ended, starting up, out of connections, or never reached: it may be better in a moment.
const UNAVAILABLE = /^(?:08|53|57P)/

function explanationOf(error: unknown, schema: QuotedSchema, what: string): unknown {
  // A TypeError is a bug, not an answer: it is shown as it is.
  if (error instanceof CommitpostError || error instanceof TypeError) return error
  const found = driverErrorOf(error)
  const missing = schemaMissing(error, schema)
  if (missing !== null) return missing
  if (found === null || UNAVAILABLE.test(found.code)) {
    const message = `${what} failed, because the database could not be reached: ${describeError(error)}. Try again later.`
    return new CommitpostError('STORE_UNAVAILABLE', message, { cause: error })
  }
  const advice =
    found.code === INSUFFICIENT_PRIVILEGE
      ? ' `commitpost roles sql` prints the rights that each role needs.'
      : ''
  const message = `${what} was refused by the database (SQLSTATE ${found.code}): ${describeError(error)}.${advice}`
  return new CommitpostError('STORE_REFUSED', message, { cause: error })
}
