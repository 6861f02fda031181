import type { Catalogue } from '../event/catalogue.ts'
import type { EventProblem } from '../event/errors.ts'
import type { EventHeaders, NewEvent } from '../event/event.ts'
import { headerProblems } from '../event/headers.ts'
import { keyTextProblem } from '../event/key-text.ts'
import type { PreparedEvent } from '../event/prepare-event.ts'
import { isSameTrace, isTraceparent, isTracestate } from '../event/trace-context.ts'
import { after } from '../runtime/after.ts'
import { normaliseUuid } from '../runtime/ids.ts'
import { isRecord, shown } from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import { describeError } from '../runtime/text.ts'
import type { GivenDetails } from './given-event.ts'

/** What building an event takes besides the event. */
export interface BuildParts {
  readonly catalogue: Catalogue
  readonly newEventId: () => string
  /** Null where there are none. */
  readonly ambientHeaders: (() => EventHeaders) | null
  readonly maxPayloadBytes: number
}

/** A complete event, or everything wrong with it. */
export type BuildResult =
  | { readonly ok: true; readonly event: NewEvent }
  | { readonly ok: false; readonly problems: readonly EventProblem[] }

// The years that every supported database can hold and every reader can parse.
const EARLIEST_MS = Date.parse('0001-01-01T00:00:00.000Z')
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Makes a storable event of what the caller gave. Collects all problems before it gives up. At once, unless the event's
 * schema is asynchronous.
 */
export function buildEvent(
  parts: BuildParts,
  type: unknown,
  given: GivenDetails,
): BuildResult | Promise<BuildResult> {
  const problems: EventProblem[] = []
  const aggregateId = keyText('aggregateId', given.aggregateId, problems)
  const orderingKey =
    given.orderingKey === undefined ? null : keyText('orderingKey', given.orderingKey, problems)
  const eventId = eventIdOf(given, parts, problems)
  const occurredAt = occurredAtOf(given, problems)
  const headers = headersOf(given, parts, problems)
  if (headers !== NO_HEADERS) problems.push(...headerProblems(headers))
  if (typeof type !== 'string') {
    const message = `must be the name of an event, but is ${shown(type)}`
    return { ok: false, problems: [...problems, { code: 'INVALID_EVENT', path: 'type', message }] }
  }
  const prepared = parts.catalogue.prepare(
    type,
    { payload: given.payload, aggregateId, orderingKey },
    { maxPayloadBytes: parts.maxPayloadBytes },
  )
  return after(prepared, (result): BuildResult => {
    if (!result.ok) return { ok: false, problems: [...problems, ...result.problems] }
    if (problems.length > 0) return { ok: false, problems }
    return { ok: true, event: joined(result.event, { eventId, aggregateId, headers, occurredAt }) }
  })
}

/** By name: to spread an object costs more than all else that is done for an event. */
function joined(
  prepared: PreparedEvent,
  own: Pick<NewEvent, 'eventId' | 'aggregateId' | 'headers' | 'occurredAt'>,
): NewEvent {
  return {
    eventId: own.eventId,
    stream: prepared.stream,
    type: prepared.type,
    schemaVersion: prepared.schemaVersion,
    aggregateType: prepared.aggregateType,
    aggregateId: own.aggregateId,
    orderingKey: prepared.orderingKey,
    sequenced: prepared.sequenced,
    payloadJson: prepared.payloadJson,
    headers: own.headers,
    occurredAt: own.occurredAt,
  }
}

function keyText(path: string, value: unknown, problems: EventProblem[]): string {
  const text = typeof value === 'string' ? value : numberText(value)
  const problem = text === null ? 'must be a string, a whole number or a bigint' : keyTextProblem(text)
  if (problem !== null) problems.push({ code: 'INVALID_EVENT', path, message: problem })
  return text ?? ''
}

// A number that JavaScript rounds would name another aggregate.
function numberText(value: unknown): string | null {
  return typeof value === 'bigint' || Number.isSafeInteger(value) ? String(value) : null
}

function eventIdOf(given: GivenDetails, parts: BuildParts, problems: EventProblem[]): string {
  if (given.eventId === undefined) return parts.newEventId()
  const eventId = normaliseUuid(given.eventId)
  if (eventId !== null) return eventId
  problems.push({ code: 'INVALID_EVENT', path: 'eventId', message: 'must be a UUID' })
  return ''
}

function occurredAtOf(given: GivenDetails, problems: EventProblem[]): Date | null {
  const at: unknown = given.occurredAt
  if (at === undefined) return null
  // NaN compares false, so an invalid Date is refused with the rest.
  if (at instanceof Date && at.getTime() >= EARLIEST_MS && at.getTime() <= LATEST_MS) return at
  problems.push({
    code: 'INVALID_EVENT',
    path: 'occurredAt',
    message: 'must be a valid Date in the years 1 to 9999',
  })
  return null
}

/** The named details over the given headers over the ambient ones; what is undefined counts as not given. */
function headersOf(given: GivenDetails, parts: BuildParts, problems: EventProblem[]): EventHeaders {
  const { traceparent, tracestate, correlationId, causationId } = given
  const ambient = parts.ambientHeaders === null ? NO_HEADERS : ambientHeaders(parts.ambientHeaders, problems)
  // Most events have none, and then nothing needs to be put together.
  if (ambient === NO_HEADERS && HEADER_SOURCES.every((source) => given[source] === undefined))
    return NO_HEADERS
  const merged = new Map<string, unknown>()
  add(merged, ambient)
  if (given.headers !== undefined) add(merged, recordOf('headers', given.headers ?? {}, problems))
  add(merged, { traceparent, tracestate, correlationId, causationId })
  if (merged.size === 0) return NO_HEADERS
  if (traceparent === undefined) followAmbientTrace(merged, ambient)
  dropBrokenTrace(merged)
  return Object.fromEntries(merged) as EventHeaders
}

const NO_HEADERS: EventHeaders = Object.freeze({})
const HEADER_SOURCES = ['headers', 'traceparent', 'tracestate', 'correlationId', 'causationId'] as const

function add(merged: Map<string, unknown>, layer: object): void {
  for (const [name, value] of Object.entries(layer)) if (value !== undefined) merged.set(name, value)
}

function ambientHeaders(current: () => EventHeaders, problems: EventProblem[]): object {
  try {
    return recordOf('ambientHeaders()', current() ?? {}, problems)
  } catch (error) {
    const message = `threw, which it must not: ${describeError(error)}`
    problems.push({ code: 'INVALID_EVENT', path: 'ambientHeaders()', message })
    return {}
  }
}

function recordOf(path: string, value: unknown, problems: EventProblem[]): object {
  try {
    // Copied here, where a getter that throws is still the caller's.
    if (isPlain(value)) return { ...value }
    problems.push({
      code: 'INVALID_EVENT',
      path,
      message: `must be a plain object of texts, but is ${shown(value)}`,
    })
  } catch (error) {
    problems.push({ code: 'INVALID_EVENT', path, message: `could not be read: ${describeError(error)}` })
  }
  return {}
}

// A Map or fetch's Headers has no properties of its own: all it holds would be lost without a word.
function isPlain(value: unknown): value is object {
  if (!isRecord(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

// The headers of an event that is chained to another carry that one's place in the trace. What is running now, in the
// same trace, comes after it: the next event follows from there.
function followAmbientTrace(headers: Map<string, unknown>, ambient: object): void {
  const carried = headers.get('traceparent')
  const current = property(ambient, 'traceparent')
  if (typeof carried !== 'string' || typeof current !== 'string' || !isSameTrace(carried, current)) return
  headers.set('traceparent', current)
  headers.set('tracestate', property(ambient, 'tracestate'))
}

// As the standard asks: who gets a malformed traceparent goes on without, and without its tracestate. What is no text at all
// came from no request: it is refused with the other headers.
function dropBrokenTrace(headers: Map<string, unknown>): void {
  const traceparent = headers.get('traceparent')
  const tracestate = headers.get('tracestate')
  if (!isTextOrNone(traceparent) || !isTextOrNone(tracestate)) return
  const hasTrace = typeof traceparent === 'string' && isTraceparent(traceparent)
  if (!hasTrace) headers.delete('traceparent')
  if (!hasTrace || typeof tracestate !== 'string' || !isTracestate(tracestate)) headers.delete('tracestate')
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}
