import { shown } from '../runtime/option-checks.ts'

/** What metrics begin with unless told otherwise. */
export const DEFAULT_PREFIX = 'commitpost'

const PREFIX = /^[a-zA-Z_:][a-zA-Z0-9_:]{0,62}[a-zA-Z0-9]$/

/** What is wrong with a prefix, as a sentence; null if nothing is. */
export function prefixProblem(name: string, value: unknown): string | null {
  if (value === undefined || (typeof value === 'string' && PREFIX.test(value))) return null
  return `${name} must be 2 to 64 letters, digits, underscores or colons that begin with no digit and end with no underscore, but is ${shown(value)}`
}
