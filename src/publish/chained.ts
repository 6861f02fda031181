import type { EventHeaders, OutboxEvent } from '../event/event.ts'
import { isRecord, refuseProblems, shown } from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import type { PublishInput } from './event-bus.ts'

const CARRIED = ['traceparent', 'tracestate', 'traceId'] as const

/**
 * The headers by which an event published while handling another points back to it: `causationId` is the handled
 * event, `correlationId` what that event was correlated by (itself, if it was the first), and the trace goes on.
 */
export function chained(event: OutboxEvent): EventHeaders {
  const isEvent = isRecord(property(event, 'headers'))
  refuseProblems('chained', [
    isEvent ? null : `the event must be one as handlers get it, but is ${shown(event)}`,
  ])
  const carried = CARRIED.flatMap((name) => {
    const value = event.headers[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    ...Object.fromEntries(carried),
    correlationId: event.headers['correlationId'] ?? event.eventId,
    causationId: event.eventId,
  }
}

/** The input of a publish, chained to the event being handled. What the input says itself wins. */
export function chainedInput<Input extends PublishInput>(event: OutboxEvent, input: Input): Input {
  // What is no input, or has headers that are none, is for the publisher to refuse.
  const headers = property(input, 'headers') ?? {}
  if (!isRecord(input) || !isRecord(headers)) return input
  return { ...input, headers: { ...chained(event), ...headers } }
}
