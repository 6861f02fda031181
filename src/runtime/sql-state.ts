import { property } from './property.ts'

// Five characters that start with anything but E: Node's own codes (EPIPE …) all do, and no SQLSTATE does.
const SQL_STATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/

/** True for the text of an SQLSTATE, which a database answers with; false for the codes of sockets and of Node. */
export function isSqlState(text: unknown): text is string {
  return typeof text === 'string' && SQL_STATE.test(text)
}

/** The SQLSTATE an error carries as its `code`, or null for anything else (a cut connection, a bug). */
export function sqlState(error: unknown): string | null {
  const code = property(error, 'code')
  return isSqlState(code) ? code : null
}
