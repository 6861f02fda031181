import { InvalidOptionsError } from '../../runtime/errors.ts'
import { shown } from '../../runtime/option-checks.ts'

/** The schema Commitpost's tables live in unless told otherwise. */
export const DEFAULT_SCHEMA = 'commitpost'

/** PostgreSQL cuts longer names silently, which would make two schemas one. */
const MAX_IDENTIFIER_BYTES = 63

/**
 * Quotes a name for use in SQL text. The only place where a name becomes part of a statement: values are always
 * parameters.
 */
export function quoteIdentifier(name: string): string {
  if (typeof name !== 'string') {
    throw new InvalidOptionsError('PostgreSQL identifier', [`a name must be text, but is ${shown(name)}`])
  }
  const problems: string[] = []
  if (name === '') problems.push('a name must not be empty')
  if (name.includes('\0')) problems.push('a name must not contain a NUL character')
  if (!name.isWellFormed()) problems.push('a name must be valid Unicode')
  if (Buffer.byteLength(name) > MAX_IDENTIFIER_BYTES)
    problems.push(`a name must be at most ${MAX_IDENTIFIER_BYTES} bytes, "${name.slice(0, 40)}…" is longer`)
  // Function bodies in the migrations are quoted with this tag.
  if (name.includes('$commitpost$')) problems.push('a name must not contain $commitpost$')
  if (problems.length > 0) throw new InvalidOptionsError('PostgreSQL identifier', problems)
  return `"${name.replaceAll('"', '""')}"`
}

/** Quotes text as an SQL literal, for the few places where a parameter is not possible (DDL). */
export function quoteLiteral(text: string): string {
  const escaped = text.replaceAll("'", "''")
  return text.includes('\\') ? ` E'${escaped.replaceAll('\\', '\\\\')}'` : `'${escaped}'`
}

/** The schema Commitpost's tables live in, ready to stand before a table name: `${schema}.outbox_event`. */
export type QuotedSchema = string & { readonly __brand: 'QuotedSchema' }

/** Quotes the schema name once, at the door. */
export function quoteSchema(name: string): QuotedSchema {
  return quoteIdentifier(name) as QuotedSchema
}

/** The name as a person wrote it: for messages. */
export function plainName(schema: QuotedSchema): string {
  return schema.slice(1, -1).replaceAll('""', '"')
}

/** A sequence of the schema as the text argument that `nextval` and `setval` take. */
export function sequenceName(schema: QuotedSchema, name: string): string {
  return quoteLiteral(`${schema}.${name}`)
}
