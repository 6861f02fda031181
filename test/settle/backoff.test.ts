import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidOptionsError } from '../../src/runtime/errors.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { exponential, fixed, schedule } from '../../src/settle/backoff.ts'
import { resolveRetryPolicy } from '../../src/settle/retry-policy.ts'

const MINUTE = 60_000
const middle = (): number => 0.5

describe('exponential', () => {
  test('E11 doubles from the base to the cap', () => {
    const backoff = exponential({ base: '500ms', cap: '60s' })
    const delays = [1, 2, 3, 4, 7, 8, 9, 1_000].map((failed) => backoff.delayMs(failed, middle))
    expect(delays).toEqual([500, 1_000, 2_000, 4_000, 32_000, 60_000, 60_000, 60_000])
  })

  test('E11 every delay lies within 20 % of min(cap, base x factor^(n-1)), also after a million failures', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60_000 }),
        fc.integer({ min: 0, max: 3_600_000 }),
        fc.double({ min: 1, max: 10, noNaN: true }),
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.integer(),
        (base, extra, factor, failed, seed) => {
          const cap = base + extra
          const exact = Math.min(cap, base * factor ** (failed - 1))
          const delay = exponential({ base, factor, cap }).delayMs(failed, seededRandom(seed))
          expect(delay).toBeGreaterThanOrEqual(Math.floor(exact * 0.8))
          expect(delay).toBeLessThanOrEqual(Math.ceil(exact * 1.2))
        },
      ),
    )
  })

  test('E11 the jitter of 20 % reaches both ends and spreads a herd', () => {
    const backoff = exponential({ base: 1_000, cap: 1_000 })
    expect(backoff.delayMs(1, () => 0)).toBe(800)
    expect(backoff.delayMs(1, () => 1 - Number.EPSILON)).toBe(1_200)
    const random = seededRandom(7)
    const delays = Array.from({ length: 1_000 }, () => backoff.delayMs(1, random))
    expect(new Set(delays).size).toBeGreaterThan(300)
    const mean = delays.reduce((sum, delay) => sum + delay, 0) / delays.length
    expect(mean).toBeGreaterThan(985)
    expect(mean).toBeLessThan(1_015)
  })

  test('full jitter lies anywhere from nothing to the whole delay', () => {
    const backoff = exponential({ base: 1_000, cap: 8_000, jitter: 'full' })
    expect(backoff.delayMs(3, () => 0)).toBe(0)
    expect(backoff.delayMs(3, () => 0.999_999)).toBe(4_000)
  })

  test('without jitter a longer row of failures never waits shorter', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 60 }), (base, failed) => {
        const backoff = exponential({ base, cap: 300_000, jitter: 0 })
        expect(backoff.delayMs(failed + 1, middle)).toBeGreaterThanOrEqual(backoff.delayMs(failed, middle))
      }),
    )
  })
})

describe('schedule and fixed', () => {
  test('U1 one minute, five, fifteen, an hour, and the last repeats', () => {
    const backoff = schedule('1m', '5m', '15m', '1h')
    const minutes = [1, 2, 3, 4, 5, 9, 500].map((failed) => backoff.delayMs(failed, middle) / MINUTE)
    expect(minutes).toEqual([1, 5, 15, 60, 60, 60, 60])
  })

  test('U1 the n-th failure takes the n-th delay, or the last, for any schedule', () => {
    const delays = fc.array(fc.integer({ min: 0, max: 1e9 }), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(delays, fc.integer({ min: 1, max: 50 }), fc.integer(), ([first, ...rest], failed, seed) => {
        const all = [first as number, ...rest]
        const delay = schedule(first as number, ...rest).delayMs(failed, seededRandom(seed))
        expect(delay).toBe(all[Math.min(failed, all.length) - 1])
      }),
    )
  })

  test('D1 L3 a fixed delay is the same every time', () => {
    expect([1, 2, 99].map((failed) => fixed('5s').delayMs(failed, middle))).toEqual([5_000, 5_000, 5_000])
    expect(fixed('2s').delayMs(1, () => 0)).toBe(2_000)
  })

  test('jitter can be asked for', () => {
    expect(fixed('10s', { jitter: 0.5 }).delayMs(1, () => 0)).toBe(5_000)
    expect(schedule('1s', '10s', { jitter: 0.1 }).delayMs(2, () => 0)).toBe(9_000)
  })
})

describe('options', () => {
  test('all problems are told together', () => {
    const bad = { base: 'soon', cap: -1, factor: 0.5, jitter: 2 } as unknown as Parameters<
      typeof exponential
    >[0]
    expect(problemsOf(() => exponential(bad))).toEqual([
      expect.stringContaining('base must be milliseconds (1500) or text with a unit'),
      expect.stringContaining('cap must be'),
      'factor must be 1 or more, but is 0.5',
      "jitter must be from 0 to 1, or 'full', but is 2",
    ])
    expect(problemsOf(() => exponential({ base: '5s', cap: '1s' }))).toEqual([
      'cap (1000 ms) must not be shorter than base (5000 ms)',
    ])
    expect(problemsOf(() => exponential({ base: 0, cap: 0 }))).toEqual(['base must be more than 0'])
    expect(problemsOf(() => schedule('1x' as '1m', { jitter: 0.1 }, '5m'))).toHaveLength(2)
  })

  test('D1 five attempts by default, 1 s x2 up to 300 s; the number counts attempts and must be one', () => {
    const policy = resolveRetryPolicy()
    expect(policy.maxAttempts).toBe(5)
    expect([1, 2, 9, 10, 50].map((failed) => policy.backoff.delayMs(failed, middle))).toEqual([
      1_000, 2_000, 256_000, 300_000, 300_000,
    ])
    for (const maxAttempts of [0, -1, 1.5, Number.NaN, 10_001]) {
      expect(problemsOf(() => resolveRetryPolicy({ maxAttempts }))[0]).toContain('the first included')
    }
    const bad = { maxAttempts: 0, backoff: {} } as unknown as Parameters<typeof resolveRetryPolicy>[0]
    expect(problemsOf(() => resolveRetryPolicy(bad))).toHaveLength(2)
  })
})

function problemsOf(make: () => unknown): readonly string[] {
  try {
    make()
  } catch (error) {
    if (error instanceof InvalidOptionsError) return error.problems
    throw error
  }
  return []
}
