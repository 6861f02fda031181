import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { durationProblem, parseDuration } from '../../src/runtime/duration.ts'
import { describeError, storableText } from '../../src/runtime/text.ts'

const codeUnit = fc.oneof(
  fc.integer({ min: 0, max: 0xffff }),
  fc.integer({ min: 0xd800, max: 0xdfff }),
  fc.integer({ min: 0, max: 0x20 }),
)
const anyText = fc.array(codeUnit, { maxLength: 60 }).map((units) => String.fromCharCode(...units))

describe('storable text', () => {
  test('has no NUL, no lone surrogate and no more than it may, whatever comes in', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 40 }), (text, max) => {
        const stored = storableText(text, max)
        expect(stored.length).toBeLessThanOrEqual(max)
        expect(stored).not.toContain('\u0000')
        expect(stored).toBe(Buffer.from(stored, 'utf8').toString('utf8'))
      }),
    )
  })

  test('text that can be stored is left as it is', () => {
    for (const text of ['', 'hello', '주문이 실패했습니다 💥', 'two\nlines\tand a tab']) {
      expect(storableText(text)).toBe(text)
    }
  })

  test('a cut says so and never halves a pair', () => {
    expect(storableText('abcdef', 4)).toBe('abc…')
    expect(storableText('ab💥cdefgh', 4)).toBe('ab…')
    expect(storableText(`${'a'.repeat(9)}💥`, 5)).toBe('aaaa…')
  })

  test('text cannot drive a terminal', () => {
    expect(storableText('\u001b[2Jgone\u0000\ud800')).toBe('\ufffd[2Jgone\ufffd\ufffd')
  })
})

describe('the description of an error', () => {
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const table: readonly (readonly [string, unknown, string])[] = [
    ['an error', new Error('boom'), 'boom'],
    ['an error of a kind', new TypeError('no function'), 'TypeError: no function'],
    ['an error without a message', new RangeError(), 'RangeError'],
    ['a name that the message repeats', Object.assign(new Error('A: b'), { name: 'A' }), 'A: b'],
    ['a string', 'text', 'text'],
    ['an empty string', '', 'an empty string was thrown'],
    ['null', null, 'null was thrown'],
    ['undefined', undefined, 'undefined was thrown'],
    ['a number', 7, '7 was thrown'],
    ['a bigint', 7n, '7 was thrown'],
    ['a symbol', Symbol('s'), 'Symbol(s) was thrown'],
    ['a function', () => {}, 'a function was thrown'],
    ['an object with a message', { message: 'm' }, 'm'],
    ['an object without one', { code: 5 }, '{"code":5} was thrown'],
    ['a circular object', circular, 'an object without a message was thrown'],
    ['a cause', new Error('a', { cause: new Error('b', { cause: 'c' }) }), 'a; caused by b; caused by c'],
    [
      'an AggregateError',
      new AggregateError([new Error('a'), 'b', null], 'all'),
      'AggregateError: all [a | b | null was thrown]',
    ],
    [
      'many errors',
      new AggregateError(Array(9).fill('x'), 'm'),
      'AggregateError: m [x | x | x | x | x | and 4 more]',
    ],
    ['a password', new Error('postgres://bob:s3cret@db/x'), 'postgres://***@db/x'],
  ]
  for (const [name, thrown, described] of table) {
    test(`holds for ${name}`, () => {
      expect(describeError(thrown)).toBe(described)
    })
  }

  test('never throws, whatever the value does when it is looked at', () => {
    const bites = new Proxy(
      {},
      {
        get() {
          throw new Error('do not touch')
        },
        ownKeys() {
          throw new Error('do not touch')
        },
      },
    )
    expect(describeError(bites)).toBe('an object without a message was thrown')
    expect(
      describeError({
        get message() {
          throw new Error('no')
        },
        name: 'Shy',
      }),
    ).toBe('Shy')
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(describeError(proxy)).toBe('an object without a message was thrown')
    fc.assert(fc.property(fc.anything(), (value) => typeof describeError(value) === 'string'))
  })

  test('ends for causes and errors that hold themselves', () => {
    const error = new AggregateError([], 'me')
    error.cause = error
    error.errors.push(error)
    expect(describeError(error)).toBe('AggregateError: me […]')
  })
})

describe('durations', () => {
  const table: readonly (readonly [number | string, number])[] = [
    [1_500, 1_500],
    [0, 0],
    ['500ms', 500],
    ['5s', 5_000],
    ['5 sec', 5_000],
    ['1m', 60_000],
    ['5 min', 300_000],
    ['1.5h', 5_400_000],
    ['2 hours', 7_200_000],
    ['7d', 604_800_000],
    ['30 days', 2_592_000_000],
    [' 1M ', 60_000],
  ]
  for (const [text, ms] of table) {
    test(`${JSON.stringify(text)} is ${ms} ms`, () => {
      expect(parseDuration(text)).toBe(ms)
    })
  }

  test('anything else is refused with advice', () => {
    for (const bad of [
      '',
      '5',
      'soon',
      '5 parsecs',
      '-5s',
      '1h30m',
      'constructor',
      '5 toString',
      Number.NaN,
      -1,
      Infinity,
    ]) {
      expect(() => parseDuration(bad, 'retry delay')).toThrow(
        /retry delay must be milliseconds \(1500\) or text/,
      )
    }
    expect(durationProblem(undefined)).toContain('but is undefined')
    expect(durationProblem('1m')).toBeNull()
  })
})
