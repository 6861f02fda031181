import { boundFindings } from './compare-bounds.ts'
import { jsonPath } from './json-path.ts'
import {
  labelOf,
  listOf,
  nodeOf,
  refOf,
  requires,
  type SchemaNode,
  typeOf,
  valuesOf,
  variantsOf,
} from './json-schema.ts'

/** What changed at one place of a payload. */
export interface SchemaFinding {
  readonly kind: SchemaFindingKind
  readonly path: string
  readonly message: string
  /** True when events of one version cannot be read by code of the other. */
  readonly breaking: boolean
}

/** The ways a payload's schema can change. */
export type SchemaFindingKind =
  | 'field-added'
  | 'field-removed'
  | 'field-required'
  | 'field-optional'
  | 'type-changed'
  | 'value-added'
  | 'value-removed'
  | 'variant-added'
  | 'variant-removed'
  | 'constraint-tightened'
  | 'constraint-loosened'

interface Comparison {
  readonly before: SchemaNode
  readonly after: SchemaNode
  readonly findings: SchemaFinding[]
  /** Pairs of references compared so far: each is told of once, and recursive schemas come to an end. */
  readonly seen: Set<string>
}

type Path = readonly (string | number)[]

/**
 * What changed between two JSON Schemas of one payload, in both directions: new code reads old events, and during a
 * deployment old code reads new ones. Knows the part of JSON Schema that schema libraries write for payloads.
 */
export function compareJsonSchemas(before: SchemaNode, after: SchemaNode): readonly SchemaFinding[] {
  const comparison: Comparison = { before, after, findings: [], seen: new Set(['# #']) }
  compareNodes(comparison, before, after, [])
  return comparison.findings
}

function compareNodes(comparison: Comparison, before: unknown, after: unknown, path: Path): void {
  const key = `${refOf(before)} ${refOf(after)}`
  if (comparison.seen.has(key)) return
  if (key !== ' ') comparison.seen.add(key)
  const old = variantsOf(comparison.before, before)
  const now = variantsOf(comparison.after, after)
  if (old.length === 1 && now.length === 1) compareSingle(comparison, old[0] ?? {}, now[0] ?? {}, path)
  else compareVariants(comparison, old, now, path)
}

function compareSingle(comparison: Comparison, before: SchemaNode, after: SchemaNode, path: Path): void {
  const was = typeOf(before)
  const is = typeOf(after)
  if (was !== is) {
    report(comparison, 'type-changed', path, `was ${was}, is now ${is}`, true)
    return
  }
  compareValues(comparison, before, after, path)
  compareFields(comparison, before, after, path)
  compareElements(comparison, before, after, path)
  for (const { kind, message } of boundFindings(before, after)) {
    report(comparison, kind, path, message, kind === 'constraint-tightened')
  }
}

/** Alternatives are paired by what tells them apart; what is left over came or went. */
function compareVariants(
  comparison: Comparison,
  before: readonly SchemaNode[],
  after: readonly SchemaNode[],
  path: Path,
): void {
  const left = [...after]
  for (const variant of before) {
    const at = left.findIndex((other) => labelOf(other) === labelOf(variant))
    const [match] = at < 0 ? [] : left.splice(at, 1)
    if (match !== undefined) compareSingle(comparison, variant, match, path)
    else
      report(
        comparison,
        'variant-removed',
        path,
        `no longer accepts ${labelOf(variant)}, which may be stored`,
        true,
      )
  }
  for (const variant of left) {
    report(
      comparison,
      'variant-added',
      path,
      `now accepts ${labelOf(variant)}, which older code refuses`,
      true,
    )
  }
}

function compareValues(comparison: Comparison, before: SchemaNode, after: SchemaNode, path: Path): void {
  const old = valuesOf(before)
  const now = valuesOf(after)
  if (old === null && now === null) return
  if (old === null)
    return report(comparison, 'constraint-tightened', path, 'accepts only listed values now', true)
  if (now === null) return report(comparison, 'constraint-loosened', path, 'accepts any value now', false)
  for (const value of old.filter((each) => !now.includes(each))) {
    report(comparison, 'value-removed', path, `no longer accepts ${value}, which may be stored`, true)
  }
  for (const value of now.filter((each) => !old.includes(each))) {
    report(comparison, 'value-added', path, `now accepts ${value}, which older code refuses`, true)
  }
}

function compareFields(comparison: Comparison, before: SchemaNode, after: SchemaNode, path: Path): void {
  const old = nodeOf(before['properties'])
  const now = nodeOf(after['properties'])
  for (const field of Object.keys(old)) {
    const at = [...path, field]
    if (!Object.hasOwn(now, field)) report(comparison, 'field-removed', at, 'was removed', true)
    else compareField(comparison, [before, old[field]], [after, now[field]], at)
  }
  const isStrict = before['additionalProperties'] === false
  for (const field of Object.keys(now).filter((name) => !Object.hasOwn(old, name))) {
    reportAdded(comparison, [...path, field], requires(after, field), isStrict)
  }
  compareOthers(comparison, before['additionalProperties'], after['additionalProperties'], path)
}

type Field = readonly [parent: SchemaNode, schema: unknown]

function compareField(comparison: Comparison, before: Field, after: Field, path: Path): void {
  const name = String(path.at(-1))
  const was = requires(before[0], name)
  const is = requires(after[0], name)
  if (!was && is)
    report(comparison, 'field-required', path, 'is now required, but stored events may lack it', true)
  if (was && !is)
    report(comparison, 'field-optional', path, 'is no longer required, but older code needs it', true)
  compareNodes(comparison, before[1], after[1], path)
}

function reportAdded(comparison: Comparison, path: Path, required: boolean, wasStrict: boolean): void {
  if (required)
    report(comparison, 'field-required', path, 'was added as required, but stored events lack it', true)
  else if (wasStrict)
    report(comparison, 'field-added', path, 'was added, but older code refuses unknown fields', true)
  else report(comparison, 'field-added', path, 'was added as optional', false)
}

/** What may stand beside the named fields: nothing, anything, or values of one schema (a record). */
function compareOthers(comparison: Comparison, before: unknown, after: unknown, path: Path): void {
  if (before !== false && after === false) {
    report(
      comparison,
      'constraint-tightened',
      path,
      'refuses unknown fields now, so newer events cannot be read',
      true,
    )
  } else if (before === false && after !== false) {
    report(comparison, 'constraint-loosened', path, 'ignores unknown fields now', false)
  } else if (typeof before === 'object' && typeof after === 'object') {
    compareNodes(comparison, before, after, [...path, '*'])
  }
}

function compareElements(comparison: Comparison, before: SchemaNode, after: SchemaNode, path: Path): void {
  const old = listOf(before['prefixItems'])
  const now = listOf(after['prefixItems'])
  if (old.length !== now.length) {
    report(comparison, 'type-changed', path, `had ${old.length} fixed places, has now ${now.length}`, true)
  }
  old.slice(0, now.length).forEach((element, index) => {
    compareNodes(comparison, element, now[index], [...path, index])
  })
  if (before['items'] !== undefined || after['items'] !== undefined) {
    compareNodes(comparison, before['items'], after['items'], [...path, '*'])
  }
  const oldParts = listOf(before['allOf'])
  const nowParts = listOf(after['allOf'])
  if (oldParts.length !== nowParts.length)
    report(comparison, 'type-changed', path, 'is put together otherwise', true)
  oldParts.slice(0, nowParts.length).forEach((part, index) => {
    compareNodes(comparison, part, nowParts[index], path)
  })
}

function report(
  comparison: Comparison,
  kind: SchemaFindingKind,
  path: Path,
  message: string,
  breaking: boolean,
): void {
  comparison.findings.push({ kind, path: jsonPath(path), message, breaking })
}
