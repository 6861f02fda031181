import { describe, expect, test } from 'vitest'
import { defineEvents } from '../../src/event/define-events.ts'
import { maskEvent, maskPayload } from '../../src/event/mask-payload.ts'
import { storedEvent } from './support.ts'

const payload = {
  email: 'a@example.com',
  card: { number: '4111', brand: 'visa' },
  items: [
    { sku: 'a', price: 1 },
    { sku: 'b', price: 2 },
  ],
  byCountry: { kr: { tax: 1 }, us: { tax: 2 } },
  nothing: null,
}

describe('U10 masking', () => {
  const table: readonly (readonly [string, unknown])[] = [
    ['email', { ...payload, email: '***' }],
    ['card.number', { ...payload, card: { number: '***', brand: 'visa' } }],
    ['card', { ...payload, card: '***' }],
    [
      'items.price',
      {
        ...payload,
        items: [
          { sku: 'a', price: '***' },
          { sku: 'b', price: '***' },
        ],
      },
    ],
    [
      'items.1.price',
      {
        ...payload,
        items: [
          { sku: 'a', price: 1 },
          { sku: 'b', price: '***' },
        ],
      },
    ],
    [
      'items.*.price',
      {
        ...payload,
        items: [
          { sku: 'a', price: '***' },
          { sku: 'b', price: '***' },
        ],
      },
    ],
    ['items.0', { ...payload, items: ['***', { sku: 'b', price: 2 }] }],
    ['byCountry.*.tax', { ...payload, byCountry: { kr: { tax: '***' }, us: { tax: '***' } } }],
    ['*', { email: '***', card: '***', items: '***', byCountry: '***', nothing: '***' }],
    ['nothing', { ...payload, nothing: '***' }],
    ['missing.path', payload],
    ['email.inside', payload],
  ]
  test.each(table)('%s', (path, expected) => {
    expect(maskPayload(payload, [path])).toEqual(expected)
  })

  test('the original is never changed', () => {
    const before = structuredClone(payload)
    maskPayload(payload, ['email', 'card.number', 'items.price', 'byCountry.*'])
    expect(payload).toEqual(before)
  })

  test('the key __proto__ is a key like any other', () => {
    const hostile: unknown = JSON.parse('{"__proto__":{"secret":1},"a":1}')
    const masked = maskPayload(hostile, ['a', '__proto__.secret'])
    expect(JSON.stringify(masked)).toBe('{"__proto__":{"secret":"***"},"a":"***"}')
    expect(({} as Record<string, unknown>)['secret']).toBeUndefined()
  })

  test('payloads that are no objects are left as they are', () => {
    expect(maskPayload('text', ['a'])).toBe('text')
    expect(maskPayload(null, ['a'])).toBeNull()
  })
})

describe('U10 masking an event for a sink', () => {
  const catalogue = defineEvents({
    UserSessionCreated: {
      stream: 'umbra.identity',
      aggregate: 'user',
      storedAs: 'USER_SESSION_CREATED',
      sensitive: ['token', { path: 'ip', from: ['log', 'alert'] }],
    },
  })
  const event = storedEvent({
    type: 'USER_SESSION_CREATED',
    payload: { token: 't', ip: '::1', user_id: 'u' },
  })

  test('a field is hidden from the sinks it names, or from all', () => {
    expect(maskEvent(catalogue, event, 'log').payload).toEqual({ token: '***', ip: '***', user_id: 'u' })
    expect(maskEvent(catalogue, event, 'audit').payload).toEqual({ token: '***', ip: '::1', user_id: 'u' })
  })

  test('a read event is masked like a stored one', () => {
    const read = { ...event, type: 'UserSessionCreated' }
    expect(maskEvent(catalogue, read, 'alert').payload).toEqual({ token: '***', ip: '***', user_id: 'u' })
  })

  test('of an event nobody defined, nothing is shown', () => {
    expect(maskEvent(catalogue, storedEvent({ type: 'Unknown', payload: { a: 1 } }), 'log').payload).toBe(
      '***',
    )
  })
})
