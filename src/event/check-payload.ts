import { isRecord } from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import type { PayloadIssue } from './errors.ts'
import type { EventSpec } from './event-spec.ts'
import { jsonPath } from './json-path.ts'
import type { StandardIssue, StandardResult, StandardSchemaV1 } from './standard-schema.ts'
import { thrownText } from './thrown-text.ts'

/** A payload that passed, in the form the schema gave it, or what is wrong with it. */
export type CheckedPayload =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly PayloadIssue[] }

const MOST_ISSUES = 20
const LONGEST_MESSAGE = 300
const NO_ANSWER = 'the schema answered neither with a value nor with issues, as Standard Schema asks'

/** Runs the event's schema. A promise only when the schema answers with one; without a schema everything passes. */
export function checkPayload(spec: EventSpec, payload: unknown): CheckedPayload | Promise<CheckedPayload> {
  if (spec.schema === null) return { ok: true, value: payload }
  const result = validate(spec, spec.schema, payload)
  if (typeof property(result, 'then') !== 'function') return judged(spec, result as StandardResult<unknown>)
  return Promise.resolve(result)
    .catch((error: unknown) => brokenSchema(spec, error))
    .then((settled) => judged(spec, settled))
}

function validate(
  spec: EventSpec,
  schema: StandardSchemaV1,
  payload: unknown,
): StandardResult<unknown> | Promise<StandardResult<unknown>> {
  try {
    return schema['~standard'].validate(payload)
  } catch (error) {
    return brokenSchema(spec, error)
  }
}

// A refinement or transform that throws is a bug of the schema, but its event must still fail like any other.
function brokenSchema(spec: EventSpec, error: unknown): StandardResult<unknown> {
  return { issues: [{ message: `the schema itself failed: ${thrownText(spec, error)}` }] }
}

function judged(spec: EventSpec, result: StandardResult<unknown>): CheckedPayload {
  const issues: unknown = property(result, 'issues')
  if (issues === undefined && isRecord(result)) return { ok: true, value: property(result, 'value') }
  const isList =
    Array.isArray(issues) && issues.every((issue) => typeof property(issue, 'message') === 'string')
  // Neither a value nor a list of messages: its answer means nothing, so the payload has not passed.
  const listed = isList ? (issues as readonly StandardIssue[]) : [{ message: NO_ANSWER }]
  return { ok: false, issues: listed.slice(0, MOST_ISSUES).map((issue) => safeIssue(spec, issue)) }
}

/** An issue without the values that some libraries put into paths and messages of sensitive fields. */
function safeIssue(spec: EventSpec, issue: StandardIssue): PayloadIssue {
  const keys = (issue.path ?? []).map(keyOf)
  const isSecret = spec.sensitive.some((field) => overlaps(field.path.split('.'), keys))
  const message = isSecret ? 'is not valid (a sensitive field: the reason is withheld)' : issue.message
  return { path: jsonPath(keys), message: message.slice(0, LONGEST_MESSAGE) }
}

function keyOf(segment: PropertyKey | { readonly key: PropertyKey }): string | number {
  const key = typeof segment === 'object' ? segment.key : segment
  return typeof key === 'symbol' ? String(key) : key
}

/** True when one path leads to or through the other: the message for a parent may quote what should be its child. */
function overlaps(sensitive: readonly string[], keys: readonly (string | number)[]): boolean {
  if (keys.length === 0) return false
  const named = keys.filter((key) => typeof key === 'string')
  const inPath = sensitive.filter((segment) => !/^\d+$/.test(segment))
  return inPath.every((segment, at) => named[at] === undefined || segment === '*' || segment === named[at])
}
