import { describe, expect, test } from 'vitest'
import { chained, chainedInput } from '../../src/publish/chained.ts'
import { storedEvent } from '../event/support.ts'

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

describe('U3 an event published while handling another', () => {
  test('U3 is caused by it, and correlated by it when it was the first', () => {
    const event = storedEvent()
    expect(chained(event)).toEqual({ causationId: event.eventId, correlationId: event.eventId })
  })

  test('U3 keeps the correlation and the trace of a chain', () => {
    const headers = {
      correlationId: 'c-1',
      causationId: 'e-0',
      traceparent: TRACEPARENT,
      tracestate: 'a=1',
      ownerId: 'O',
    }
    const event = storedEvent({ headers })
    expect(chained(event)).toEqual({
      causationId: event.eventId,
      correlationId: 'c-1',
      traceparent: TRACEPARENT,
      tracestate: 'a=1',
    })
  })

  test('what the handler says itself wins', () => {
    const event = storedEvent({ headers: { traceId: 't-1' } })
    const input = { aggregateId: '1', payload: {}, headers: { correlationId: 'own', market: 'KRW' } }
    expect(chainedInput(event, input).headers).toEqual({
      causationId: event.eventId,
      correlationId: 'own',
      traceId: 't-1',
      market: 'KRW',
    })
  })
})
