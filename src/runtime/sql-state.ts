import { property, textProperty } from './property.ts'

// Five characters that start with anything but E: Node's own codes (EPIPE …) all do, and no SQLSTATE does.
const SQL_STATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/

/** SQLSTATE of a right that the role does not have. */
export const INSUFFICIENT_PRIVILEGE = '42501'

/** True for the text of an SQLSTATE, which a database answers with; false for the codes of sockets and of Node. */
export function isSqlState(text: unknown): text is string {
  return typeof text === 'string' && SQL_STATE.test(text)
}

/** The SQLSTATE an error carries as its `code`, or null for anything else (a cut connection, a bug). */
export function sqlState(error: unknown): string | null {
  const code = property(error, 'code')
  return isSqlState(code) ? code : null
}

/** SQLSTATE of connections, rights, schemas, conflicts and the server's own troubles: they concern all rows alike. */
const ABOUT_ALL = /^(?:08|25|28|3D|3F|40|42|53|55(?!000)|57|58|F0|XX)/
/** SQLSTATE of what a statement names: in a function, which is a trigger's, it concerns the rows that this is called for. */
const ABOUT_NAMES = /^42/

/**
 * Whether a statement failed for what one of its rows is: data, constraints and what triggers raise, under any code of their
 * own. To try the same again cannot help, and without that row it would pass.
 */
export function isAboutARow(error: unknown): boolean {
  const code = sqlState(error)
  if (code === null) return false
  return !ABOUT_ALL.test(code) || (ABOUT_NAMES.test(code) && textProperty(error, 'where') !== undefined)
}
