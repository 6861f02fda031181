import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodePayload, tryEncodePayload } from '../../src/event/encode-payload.ts'
import { type EventProblem, InvalidEventError } from '../../src/event/errors.ts'
import { unstorableText } from '../../src/runtime/unstorable-text.ts'

const MIB = 1_048_576

function problemsOf(value: unknown, maxBytes = MIB): readonly EventProblem[] {
  const encoded = tryEncodePayload(value, maxBytes)
  return encoded.ok ? [] : encoded.problems
}

function firstProblem(value: unknown): string {
  const [problem] = problemsOf(value)
  return problem === undefined ? 'none' : `${problem.path}: ${problem.message}`
}

class Money {
  readonly #amount: number
  constructor(amount: number) {
    this.#amount = amount
  }
  get amount(): number {
    return this.#amount
  }
}

const cyclic: Record<string, unknown> = { a: { b: [] } }
cyclic['a'] = { b: [cyclic] }

const deep = (levels: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level += 1) value = { in: value }
  return value
}

describe('what can be stored', () => {
  const storable: readonly (readonly [string, unknown, string])[] = [
    ['null', null, 'null'],
    ['text', 'a "quoted" 한글 😀', '"a \\"quoted\\" 한글 😀"'],
    ['a number', 0.1, '0.1'],
    ['negative zero', { n: -0 }, '{"n":0}'],
    ['the largest safe integer', Number.MAX_SAFE_INTEGER, '9007199254740991'],
    ['the smallest double', 5e-324, '5e-324'],
    ['a list', [1, 'a', null, [true]], '[1,"a",null,[true]]'],
    ['an undefined property, as an absent one', { a: undefined, b: 1 }, '{"b":1}'],
    ['a Date', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['an object with toJSON', { m: { toJSON: (key: string) => `[${key}]` } }, '{"m":"[m]"}'],
    ['a toJSON that answers undefined', { m: { toJSON: () => undefined }, n: 1 }, '{"n":1}'],
    ['a URL', new URL('https://a.example/'), '"https://a.example/"'],
    ['boxed primitives', [new String('s'), new Number(1), new Boolean(false)], '["s",1,false]'],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['an empty object of another realm', runInNewContext('({})'), '{}'],
    [
      'an object of a class with fields',
      new (class Point {
        x = 1
      })(),
      '{"x":1}',
    ],
    ['the key __proto__', JSON.parse('{"__proto__":{"a":1}}'), '{"__proto__":{"a":1}}'],
    ['the same object twice', ((shared) => [shared, shared])({ a: 1 }), '[{"a":1},{"a":1}]'],
    ['200 levels', deep(200), `${'{"in":'.repeat(200)}1${'}'.repeat(200)}`],
  ]
  test.each(storable)('%s', (_, value, json) => {
    expect(encodePayload(value)).toBe(json)
  })
})

describe('what is refused, with its place', () => {
  const refused: readonly (readonly [string, unknown, string])[] = [
    ['undefined as a whole', undefined, 'payload: is undefined'],
    ['undefined in a list', { a: [1, undefined] }, 'payload.a[1]: is undefined inside an array'],
    ['a hole in a list', [1, , 2], 'payload[1]: is undefined inside an array'], // oxlint-disable-line no-sparse-arrays
    [
      'a NUL character',
      { a: [{ b: 'x\0y' }] },
      'payload.a[0].b: contains a NUL character (U+0000) at offset 1',
    ],
    ['half a surrogate pair', { a: 'ab\ud800' }, 'payload.a: contains half of a surrogate pair at offset 2'],
    ['a NUL in a key', { 'a\0': 1 }, 'payload["a\\u0000"]: has a key that contains a NUL'],
    ['half a pair in a key', { '\udc00': 1 }, 'payload["\\udc00"]: has a key that contains half'],
    ['a function', { f: () => 1 }, 'payload.f: is a function'],
    ['a symbol', [Symbol('s')], 'payload[0]: is a symbol'],
    ['a bigint', { n: 1n }, 'payload.n: is a bigint, which JSON cannot hold; send it as a string'],
    ['a boxed bigint', { n: Object(1n) }, 'payload.n: is a bigint'],
    ['NaN', { n: Number.NaN }, 'payload.n: is NaN'],
    ['Infinity', { n: -Infinity }, 'payload.n: is -Infinity'],
    ['an unsafe integer', { n: 2 ** 53 }, 'payload.n: is a number beyond 2^53 - 1'],
    ['an unsafe negative integer', { n: -(2 ** 53) }, 'payload.n: is a number beyond 2^53 - 1'],
    ['a very large number', 1e300, 'payload: is a number beyond 2^53 - 1'],
    ['a cycle', cyclic, 'payload.a.b[0]: contains itself'],
    ['201 levels', deep(201), `payload${'.in'.repeat(200)}: is nested more than 200 levels deep`],
    ['an invalid Date', { at: new Date(Number.NaN) }, 'payload.at: is an invalid Date'],
    ['a Map', { m: new Map([[1, 2]]) }, 'payload.m: is a Map or Set'],
    ['a Set', new Set([1]), 'payload: is a Map or Set'],
    ['a Buffer', { b: Buffer.from('a') }, 'payload.b: is binary data; send it as base64 text'],
    ['a typed array', new Uint8Array(1), 'payload: is binary data'],
    ['an ArrayBuffer', new ArrayBuffer(1), 'payload: is binary data'],
    ['an Error', { e: new TypeError('x') }, 'payload.e: is an Error'],
    ['a promise', { p: Promise.resolve(1) }, 'payload.p: is an object of a class without own fields'],
    ['a RegExp', /x/, 'payload: is an object of a class without own fields'],
    [
      'an object that hides its fields',
      { m: new Money(1) },
      'payload.m: is an object of a class without own fields',
    ],
    [
      'a Date from toJSON',
      { toJSON: () => new Date() },
      'payload: is an object of a class without own fields',
    ],
    ['a bigint from toJSON', [{ toJSON: () => 1n }], 'payload[0]: is a bigint'],
    [
      'a getter that throws',
      {
        a: {
          get b(): never {
            throw new Error('no')
          },
        },
      },
      'payload.a.b: could not be read: no',
    ],
    [
      'a toJSON that throws',
      [
        {
          toJSON: () => {
            throw new Error('no')
          },
        },
      ],
      'payload[0]: could not be read: no',
    ],
    ['a key that is no name', { 'a b': { 'c.d': 1n } }, 'payload["a b"]["c.d"]: is a bigint'],
  ]
  test.each(refused)('%s', (_, value, message) => {
    expect(firstProblem(value)).toContain(message)
  })

  test('all problems are told together', () => {
    const paths = problemsOf({ a: 1n, b: [Number.NaN, 'ok', '\0'], c: 'ok' }).map(({ path }) => path)
    expect(paths).toEqual(['payload.a', 'payload.b[0]', 'payload.b[2]'])
  })

  test('a list of nothing but problems ends after twenty of them', () => {
    const holes: unknown[] = []
    holes.length = 4_294_967_295
    expect(problemsOf(holes)).toHaveLength(20)
  })

  test('the error carries the code and the problems', () => {
    expect(() => encodePayload({ a: 1n })).toThrow(
      expect.objectContaining({
        code: 'PAYLOAD_NOT_STORABLE',
        problems: [expect.objectContaining({ path: 'payload.a' })],
      }),
    )
  })
})

describe('the size limit', () => {
  test('counts bytes of UTF-8, not characters', () => {
    expect(tryEncodePayload('한', 5).ok).toBe(true)
    expect(tryEncodePayload('한', 4).ok).toBe(false)
  })

  test('the error tells the size, the limit and the option', () => {
    const [problem] = problemsOf('x'.repeat(MIB))
    expect(problem).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', path: 'payload' })
    expect(problem?.message).toContain(
      `is ${MIB + 2} bytes; the limit is ${MIB} bytes (option maxPayloadBytes)`,
    )
  })

  test('one mebibyte is the default', () => {
    expect(encodePayload('x'.repeat(MIB - 2))).toHaveLength(MIB)
    expect(() => encodePayload('x'.repeat(MIB - 1))).toThrow(InvalidEventError)
  })

  test('a small graph that would become endless text is given up', () => {
    let value: unknown = ['x']
    for (let level = 0; level < 150; level += 1) value = [value, value]
    expect(problemsOf(value)).toEqual([
      expect.objectContaining({
        code: 'PAYLOAD_TOO_LARGE',
        message: expect.stringContaining('is over 4194304 bytes'),
      }),
    ])
  })
})

describe('laws', () => {
  const isStorable = (value: unknown): boolean => {
    if (typeof value === 'string') return unstorableText(value) === null
    if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER
    if (typeof value !== 'object' || value === null) return true
    return Object.entries(value).every(([key, member]) => unstorableText(key) === null && isStorable(member))
  }

  test('a JSON value is refused, or written exactly as JSON.stringify writes it', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const encoded = tryEncodePayload(value, MIB)
        expect(encoded.ok).toBe(isStorable(value))
        if (encoded.ok) expect(encoded.json).toBe(JSON.stringify(value))
      }),
      { numRuns: 500 },
    )
  })

  test('text of every kind round-trips or is refused', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (key, text) => {
        const encoded = tryEncodePayload({ [key]: text }, MIB)
        if (encoded.ok) expect(JSON.parse(encoded.json)).toEqual({ [key]: text })
        else expect(unstorableText(key) ?? unstorableText(text)).not.toBeNull()
      }),
      { numRuns: 500 },
    )
  })

  test('whatever it is given, it throws nothing but its own error', () => {
    const hostile = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withObjectString: true,
      withSparseArray: true,
      withTypedArray: true,
      withUnicodeString: true,
    })
    fc.assert(
      fc.property(hostile, (value) => {
        try {
          JSON.parse(encodePayload(value))
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidEventError)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
