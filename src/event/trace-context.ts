import type { EventHeaders } from './event.ts'

// https://www.w3.org/TR/trace-context/: version, trace id, parent id, flags; an all-zero id is none.
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const LONGEST_TRACESTATE = 512
const PRINTABLE = /^[\x20-\x7e]+$/

/** The trace an event belongs to: the trace id inside `traceparent`, else the header `traceId`, else null. */
export function traceIdOf(headers: EventHeaders): string | null {
  const traceparent = headers['traceparent']
  const inTraceparent = traceparent === undefined ? undefined : TRACEPARENT.exec(traceparent)?.[1]
  return inTraceparent ?? headers['traceId'] ?? null
}

/** True for a well-formed W3C traceparent. */
export function isTraceparent(text: string): boolean {
  return TRACEPARENT.test(text)
}

/** True for a tracestate worth carrying: the standard lets anybody drop one over 512 characters. */
export function isTracestate(text: string): boolean {
  return text.length <= LONGEST_TRACESTATE && PRINTABLE.test(text)
}

/** True for two well-formed W3C traceparents of one trace. */
export function isSameTrace(one: string, other: string): boolean {
  const traceId = TRACEPARENT.exec(one)?.[1]
  return traceId !== undefined && traceId === TRACEPARENT.exec(other)?.[1]
}
