import type { EventHeaders, OutboxEvent } from '../event/event.ts'
import type { PublishInput } from './event-bus.ts'

const CARRIED = ['traceparent', 'tracestate', 'traceId'] as const

/**
 * The headers by which an event published while handling another points back to it: `causationId` is the handled
 * event, `correlationId` what that event was correlated by (itself, if it was the first), and the trace goes on.
 */
export function chained(event: OutboxEvent): EventHeaders {
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
  return { ...input, headers: { ...chained(event), ...input.headers } }
}
