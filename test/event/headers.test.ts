import { describe, expect, test } from 'vitest'
import { headerProblems } from '../../src/event/headers.ts'
import { traceIdOf } from '../../src/event/trace-context.ts'

const many = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`h${index}`, 'v']))

describe('headers', () => {
  test('ordinary ones pass', () => {
    expect(
      headerProblems({ ownerId: 'OWNER', 'x-market.code_1': 'KRW-BTC', empty: '', korean: '값' }),
    ).toEqual([])
  })

  const refused: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ['a name with a space', { 'a b': 'x' }, 'headers["a b"]'],
    ['an empty name', { '': 'x' }, 'headers[""]'],
    ['a name of 129 characters', { ['n'.repeat(129)]: 'x' }, 'headers["nnn'],
    ['the name __proto__', JSON.parse('{"__proto__":"x"}'), 'headers.__proto__'],
    ['a NUL', { a: 'x\0' }, 'headers.a'],
    ['a line feed', { a: 'x\ny' }, 'headers.a'],
    ['a carriage return', { a: 'x\ry' }, 'headers.a'],
    ['half a surrogate pair', { a: '\ud800' }, 'headers.a'],
    ['a number', { a: 1 }, 'headers.a'],
    ['an object that cannot be made text', { a: Object.create(null) }, 'headers.a'],
    ['a field of the envelope', { eventId: 'x' }, 'headers.eventId'],
    ['65 headers', many(65), 'headers'],
    ['more than 8 KiB', { a: 'x'.repeat(8_192) }, 'headers'],
  ]
  test.each(refused)('%s is refused', (_, headers, path) => {
    const [problem] = headerProblems(headers)
    expect(problem?.path.startsWith(path)).toBe(true)
    expect(problem?.code).toBe('INVALID_EVENT')
  })

  test('64 headers pass', () => {
    expect(headerProblems(many(64))).toEqual([])
  })
})

describe('the trace of an event', () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'

  test('E7 comes from traceparent, else from traceId', () => {
    expect(traceIdOf({ traceparent: `00-${traceId}-00f067aa0ba902b7-01`, traceId: 'other' })).toBe(traceId)
    expect(traceIdOf({ traceId: 'a-uuid' })).toBe('a-uuid')
    expect(traceIdOf({})).toBeNull()
  })

  test('a malformed traceparent counts as none', () => {
    expect(traceIdOf({ traceparent: 'nonsense' })).toBeNull()
    expect(traceIdOf({ traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` })).toBeNull()
    expect(traceIdOf({ traceparent: 'nonsense', traceId: 'x' })).toBe('x')
  })
})
