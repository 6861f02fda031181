import type { SchemaNode } from './json-schema.ts'

/** A limit on values that was made narrower or wider. */
export interface BoundFinding {
  readonly kind: 'constraint-tightened' | 'constraint-loosened'
  readonly message: string
}

const LOWER = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'] as const
const UPPER = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'] as const
const OTHER = ['format', 'multipleOf', 'uniqueItems', 'contentEncoding', 'propertyNames', 'not'] as const

/** Limits that changed. Narrower means that stored events may not pass any more; wider hurts nobody who reads. */
export function boundFindings(before: SchemaNode, after: SchemaNode): readonly BoundFinding[] {
  return [
    ...LOWER.flatMap((key) => numericFinding(key, before[key], after[key], 1)),
    ...UPPER.flatMap((key) => numericFinding(key, before[key], after[key], -1)),
    ...OTHER.flatMap((key) => textFinding(key, before[key], after[key])),
    ...patternFinding(before, after),
  ]
}

/** `narrower` is the sign of a change that lets fewer values pass. */
function numericFinding(
  key: string,
  before: unknown,
  after: unknown,
  narrower: 1 | -1,
): readonly BoundFinding[] {
  if (typeof before !== 'number' || typeof after !== 'number') return textFinding(key, before, after)
  if (before === after) return []
  return [finding(Math.sign(after - before) === narrower, key, before, after)]
}

function textFinding(key: string, before: unknown, after: unknown): readonly BoundFinding[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  return [finding(after !== undefined, key, before, after)]
}

// Libraries polish the pattern they write for a format (e-mail, uuid) from release to release: the format says it all.
function patternFinding(before: SchemaNode, after: SchemaNode): readonly BoundFinding[] {
  if (before['format'] !== undefined && before['format'] === after['format']) return []
  return textFinding('pattern', before['pattern'], after['pattern'])
}

function finding(tightened: boolean, key: string, before: unknown, after: unknown): BoundFinding {
  const change = `${key} was ${shown(before)}, is now ${shown(after)}`
  return tightened
    ? { kind: 'constraint-tightened', message: `${change}: stored events may not pass` }
    : { kind: 'constraint-loosened', message: change }
}

function shown(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value)
}
