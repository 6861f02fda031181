import { describe, expect, test } from 'vitest'
import { fromEnvelope, InvalidEnvelopeError, toEnvelope } from '../../src/event/envelope.ts'
import { storedEvent } from './support.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const event = storedEvent({
  type: 'OrderAccepted',
  payload: { orderId: 'o-1' },
  headers: {
    traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
    tracestate: 'a=1',
    correlationId: 'c-1',
    causationId: 'e-0',
    ownerId: 'OWNER',
    strategyKey: 'EXTREME_FLIP',
    market: 'KRW-BTC',
  },
})

describe('E7 the common envelope', () => {
  test('E7 has the fixed fields, the attributes of the domain and the payload', () => {
    expect(toEnvelope(event)).toEqual({
      schemaVersion: 1,
      eventId: event.eventId,
      type: 'OrderAccepted',
      occurredAt: '2026-02-17T00:00:00.000Z',
      traceId,
      ownerId: 'OWNER',
      strategyKey: 'EXTREME_FLIP',
      market: 'KRW-BTC',
      payload: { orderId: 'o-1' },
    })
  })

  test('E7 the order of the fields is fixed, the payload last', () => {
    expect(Object.keys(toEnvelope(event))).toEqual([
      'schemaVersion',
      'eventId',
      'type',
      'occurredAt',
      'traceId',
      'ownerId',
      'strategyKey',
      'market',
      'payload',
    ])
  })

  test('E7 traceId is null where there is no trace', () => {
    expect(toEnvelope(storedEvent())['traceId']).toBeNull()
  })

  test('E7 what was written is read back, attributes as headers', () => {
    expect(fromEnvelope(JSON.parse(JSON.stringify(toEnvelope(event))))).toEqual({
      schemaVersion: 1,
      eventId: event.eventId,
      type: 'OrderAccepted',
      occurredAt: event.occurredAt,
      headers: { traceId, ownerId: 'OWNER', strategyKey: 'EXTREME_FLIP', market: 'KRW-BTC' },
      payload: { orderId: 'o-1' },
    })
  })

  test('no attribute can pass for a field', () => {
    const forged = storedEvent({ headers: { eventId: 'forged', payload: 'forged' }, payload: { a: 1 } })
    expect(toEnvelope(forged)).toMatchObject({ eventId: forged.eventId, payload: { a: 1 } })
  })

  test('I5 the fields can be spelt as another system expects them', () => {
    const fields = {
      type: 'eventType',
      occurredAt: 'timestamp',
      aggregateId: true,
      schemaVersion: false,
      traceId: false,
    } as const
    const envelope = toEnvelope(storedEvent({ payload: { a: 1 } }), fields)
    expect(envelope).toEqual({
      eventId: storedEvent().eventId,
      eventType: 'OrderPlaced',
      timestamp: '2026-02-17T00:00:00.000Z',
      aggregateId: '42',
      payload: { a: 1 },
    })
    expect(fromEnvelope(envelope, fields)).toMatchObject({
      type: 'OrderPlaced',
      schemaVersion: 1,
      headers: {},
    })
  })

  test('attributes that are numbers or booleans become texts', () => {
    const envelope = { ...toEnvelope(storedEvent()), retries: 3, urgent: true, nothing: null }
    expect(fromEnvelope(envelope).headers).toEqual({ retries: '3', urgent: 'true' })
  })

  test('something else is refused, with all that is wrong', () => {
    expect(() => fromEnvelope('text')).toThrow(InvalidEnvelopeError)
    expect(() => fromEnvelope([])).toThrow(InvalidEnvelopeError)
    const broken = { schemaVersion: 0, eventId: '', occurredAt: 'yesterday', owner: { id: 1 } }
    expect(() => fromEnvelope(broken)).toThrow(
      expect.objectContaining({
        code: 'INVALID_ENVELOPE',
        problems: [
          expect.stringContaining('schemaVersion'),
          expect.stringContaining('eventId'),
          expect.stringContaining('type'),
          expect.stringContaining('occurredAt'),
          expect.stringContaining('attribute owner'),
          'payload is missing',
        ],
      }),
    )
  })
})
