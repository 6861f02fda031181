import { after } from '../runtime/after.ts'
import { type CheckedPayload, checkPayload } from './check-payload.ts'
import { tryEncodePayload } from './encode-payload.ts'
import type { EventProblem, PayloadIssue } from './errors.ts'
import type { NewEvent } from './event.ts'
import type { EventSpec } from './event-spec.ts'
import { keyTextProblem } from './key-text.ts'
import { thrownText } from './thrown-text.ts'

/** What the catalogue needs of an event that is to be published. */
export interface PrepareInput {
  readonly payload: unknown
  readonly aggregateId: string
  /** Chosen by the publisher; null leaves it to the definition. */
  readonly orderingKey: string | null
}

/** Bounds on what is written. */
export interface PrepareLimits {
  readonly maxPayloadBytes: number
}

/** The catalogue's share of a new event. */
export type PreparedEvent = Pick<
  NewEvent,
  'stream' | 'type' | 'schemaVersion' | 'aggregateType' | 'orderingKey' | 'sequenced' | 'payloadJson'
>

/** A prepared event, or everything that is wrong with it. */
export type PrepareResult =
  | { readonly ok: true; readonly event: PreparedEvent }
  | { readonly ok: false; readonly problems: readonly EventProblem[] }

/**
 * Checks a payload against its schema and the database's limits, and completes the event from its definition. At once,
 * unless the schema is asynchronous.
 */
export function prepareEvent(
  spec: EventSpec,
  input: PrepareInput,
  limits: PrepareLimits,
): PrepareResult | Promise<PrepareResult> {
  return after(storedForm(spec, input.payload, limits.maxPayloadBytes), (payload) =>
    payload.ok ? completed(spec, input, payload) : payload,
  )
}

function completed(
  spec: EventSpec,
  input: PrepareInput,
  payload: { readonly json: string; readonly value: unknown },
): PrepareResult {
  const key = orderingKeyFor(spec, payload.value, input)
  if (!key.ok) return key
  return {
    ok: true,
    event: {
      stream: spec.stream,
      type: spec.storedAs,
      schemaVersion: spec.version,
      aggregateType: spec.aggregate,
      orderingKey: key.orderingKey,
      sequenced: spec.sequenced,
      payloadJson: payload.json,
    },
  }
}

type Refused = { readonly ok: false; readonly problems: readonly EventProblem[] }
type StoredForm = { readonly ok: true; readonly json: string; readonly value: unknown } | Refused

/**
 * The text to store. Preferably what the schema made of the payload: defaults filled in, unknown fields dropped, so
 * that a whole row can be passed without leaking its other columns. But a reader runs the same schema over what is
 * stored, so that is right only if the schema takes its own output for the same again; where it transforms (text to
 * bigint, say), the payload is stored as given. Either way the reader is proven here to get a valid payload.
 */
function storedForm(spec: EventSpec, payload: unknown, maxBytes: number): StoredForm | Promise<StoredForm> {
  if (spec.schema === null) {
    const encoded = tryEncodePayload(payload, maxBytes)
    return encoded.ok ? { ok: true, json: encoded.json, value: payload } : encoded
  }
  return after(checkPayload(spec, payload), (checked) => {
    if (!checked.ok) return refused(checked.issues, '')
    return after(stableText(spec, checked.value, maxBytes), (json) =>
      json === null
        ? asGiven(spec, payload, checked.value, maxBytes)
        : { ok: true, json, value: checked.value },
    )
  })
}

function asGiven(
  spec: EventSpec,
  payload: unknown,
  value: unknown,
  maxBytes: number,
): StoredForm | Promise<StoredForm> {
  const given = tryEncodePayload(payload, maxBytes)
  if (!given.ok) return given
  return after(checkPayload(spec, JSON.parse(given.json)), (readBack) =>
    readBack.ok
      ? { ok: true, json: given.json, value }
      : refused(
          readBack.issues,
          ' when read back from JSON, as handlers will; the schema must accept the stored form',
        ),
  )
}

/** The schema's output as text, if reading that text gives the same output; else null. */
function stableText(
  spec: EventSpec,
  output: unknown,
  maxBytes: number,
): string | null | Promise<string | null> {
  const first = tryEncodePayload(output, maxBytes)
  if (!first.ok) return null
  return after<CheckedPayload, string | null>(checkPayload(spec, JSON.parse(first.json)), (again) => {
    if (!again.ok) return null
    const second = tryEncodePayload(again.value, maxBytes)
    return second.ok && second.json === first.json ? first.json : null
  })
}

function refused(issues: readonly PayloadIssue[], suffix: string): Refused {
  return {
    ok: false,
    problems: issues.map(({ path, message }) => ({
      code: 'PAYLOAD_INVALID',
      path,
      message: message + suffix,
    })),
  }
}

function orderingKeyFor(
  spec: EventSpec,
  payload: unknown,
  input: PrepareInput,
): { readonly ok: true; readonly orderingKey: string | null } | Refused {
  if (input.orderingKey !== null || spec.orderingKey === null)
    return { ok: true, orderingKey: input.orderingKey }
  const key = callOrderingKey(spec, spec.orderingKey, payload, input.aggregateId)
  const problem = typeof key === 'string' ? keyTextProblem(key) : key.problem
  if (problem === null && typeof key === 'string') return { ok: true, orderingKey: key }
  const message = `made by the definition of ${spec.name} ${problem}`
  return { ok: false, problems: [{ code: 'INVALID_EVENT', path: 'orderingKey', message }] }
}

function callOrderingKey(
  spec: EventSpec,
  orderingKey: NonNullable<EventSpec['orderingKey']>,
  payload: unknown,
  aggregateId: string,
): string | { readonly problem: string } {
  try {
    const key = orderingKey(payload, { aggregateId })
    return typeof key === 'string'
      ? key
      : { problem: `must be a string, but is ${key === null ? 'null' : typeof key}` }
  } catch (error) {
    return { problem: `could not be made: ${thrownText(spec, error)}` }
  }
}
