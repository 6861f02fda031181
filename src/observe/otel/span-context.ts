import {
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  type SpanContext,
  trace,
} from '@opentelemetry/api'
import type { EventHeaders } from '../../event/event.ts'
import { isTraceparent } from '../../event/trace-context.ts'

// The W3C form, whatever propagator the application has: the table is read by others too.

/** The current span as headers; empty where there is none. */
export function currentHeaders(): EventHeaders {
  const span = trace.getSpanContext(context.active())
  if (span === undefined || !isSpanContextValid(span)) return {}
  const flags = span.traceFlags.toString(16).padStart(2, '0')
  const tracestate = span.traceState?.serialize() ?? ''
  return {
    traceparent: `00-${span.traceId}-${span.spanId}-${flags}`,
    ...(tracestate !== '' && { tracestate }),
  }
}

/** The current context with the span that an event's headers name as its parent; unchanged where they name none. */
export function contextOf(headers: EventHeaders): Context {
  const active = context.active()
  const span = spanContextOf(headers)
  return span === null ? active : trace.setSpanContext(active, span)
}

function spanContextOf({ traceparent, tracestate }: EventHeaders): SpanContext | null {
  if (traceparent === undefined || !isTraceparent(traceparent)) return null
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  }
}
