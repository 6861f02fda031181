import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DeliveryOutcome, RetryAdvice, Settlement } from '../../src/delivery/delivery.ts'
import { NOT_COMMITTED } from '../../src/delivery/failure.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { fixed, schedule } from '../../src/settle/backoff.ts'
import { decide } from '../../src/settle/decide.ts'

const failure = { code: 'ECONNRESET', message: 'socket hang up' }
const policy = { backoff: fixed('5s'), maxAttempts: 5 }
const byPolicy: RetryAdvice = { kind: 'by-policy' }
const never: RetryAdvice = { kind: 'never' }
const after = (delayMs: number): RetryAdvice => ({ kind: 'after', delayMs })
const failed = (retry: RetryAdvice): DeliveryOutcome => ({ kind: 'failed', failure, retry })
const noSpread = (): number => 0

const exhausted = (attempt: number): Settlement => ({
  kind: 'dead',
  failure: {
    code: 'ECONNRESET',
    message:
      attempt === 1
        ? 'The only attempt failed with: socket hang up'
        : `All ${attempt} attempts failed, the last with: socket hang up`,
  },
})

const table: readonly {
  readonly title: string
  readonly attempt: number
  readonly outcome: DeliveryOutcome
  readonly settlement: Settlement
}[] = [
  { title: 'handled is done', attempt: 1, outcome: { kind: 'handled' }, settlement: { kind: 'done' } },
  {
    title: 'handled on the last attempt is done',
    attempt: 5,
    outcome: { kind: 'handled' },
    settlement: { kind: 'done' },
  },
  {
    title: 'handled and completed in a transaction that was rolled back is retried by the policy',
    attempt: 1,
    outcome: { kind: 'handled', completed: true },
    settlement: { kind: 'retry', delayMs: 5_000, failure: NOT_COMMITTED },
  },
  {
    title: 'E10 a first failure is retried by the policy',
    attempt: 1,
    outcome: failed(byPolicy),
    settlement: { kind: 'retry', delayMs: 5_000, failure },
  },
  {
    title: 'D1 the fourth failure of five attempts is retried',
    attempt: 4,
    outcome: failed(byPolicy),
    settlement: { kind: 'retry', delayMs: 5_000, failure },
  },
  {
    title: 'D1 E12 L3 the fifth failure of five attempts is a dead letter',
    attempt: 5,
    outcome: failed(byPolicy),
    settlement: exhausted(5),
  },
  {
    title: 'E12 an attempt beyond the last is a dead letter',
    attempt: 6,
    outcome: failed(byPolicy),
    settlement: exhausted(6),
  },
  {
    title: 'E10 what cannot heal dies at once, with its own words',
    attempt: 1,
    outcome: failed(never),
    settlement: { kind: 'dead', failure },
  },
  {
    title: 'what names its time waits for it',
    attempt: 1,
    outcome: failed(after(90_000)),
    settlement: { kind: 'retry', delayMs: 90_000, failure },
  },
  {
    title: 'E12 what names its time dies all the same when no attempt is left',
    attempt: 5,
    outcome: failed(after(90_000)),
    settlement: exhausted(5),
  },
  {
    title: 'an interruption gives it back at once',
    attempt: 1,
    outcome: { kind: 'interrupted' },
    settlement: { kind: 'release', delayMs: 0 },
  },
  {
    title: 'an interruption of the last attempt is no death',
    attempt: 5,
    outcome: { kind: 'interrupted' },
    settlement: { kind: 'release', delayMs: 0 },
  },
  {
    title: 'a postponed delivery is given back for later, its last attempt too',
    attempt: 5,
    outcome: { kind: 'postponed', failure, afterMs: 30_000 },
    settlement: { kind: 'release', delayMs: 30_000 },
  },
]

describe('decide', () => {
  for (const { title, attempt, outcome, settlement } of table) {
    test(title, () => {
      expect(decide({ attempt, maxAttempts: 5 }, outcome, policy, noSpread)).toEqual(settlement)
    })
  }

  test("the delivery's own number of attempts rules, not today's policy", () => {
    expect(decide({ attempt: 5, maxAttempts: 10 }, failed(byPolicy), policy, noSpread).kind).toBe('retry')
    expect(decide({ attempt: 1, maxAttempts: 1 }, failed(byPolicy), policy, noSpread).kind).toBe('dead')
  })

  test('U1 ten attempts at 1, 5, 15, 60, 60 … minutes, then dead', () => {
    const slow = { backoff: schedule('1m', '5m', '15m', '1h'), maxAttempts: 10 }
    const settlements = Array.from({ length: 10 }, (_, index) =>
      decide({ attempt: index + 1, maxAttempts: 10 }, failed(byPolicy), slow, noSpread),
    )
    expect(settlements.map((s) => (s.kind === 'retry' ? s.delayMs / 60_000 : s.kind))).toEqual([
      1,
      5,
      15,
      60,
      60,
      60,
      60,
      60,
      60,
      'dead',
    ])
  })

  test('deliveries told to come back at one time come back a little apart, never before, never 5 s later', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 86_400_000 }), fc.integer(), (delayMs, seed) => {
        const settled = decide(
          { attempt: 1, maxAttempts: 5 },
          failed(after(delayMs)),
          policy,
          seededRandom(seed),
        )
        expect(settled.kind).toBe('retry')
        if (settled.kind !== 'retry') return
        expect(settled.delayMs).toBeGreaterThanOrEqual(delayMs)
        expect(settled.delayMs).toBeLessThanOrEqual(delayMs + 5_000)
      }),
    )
  })

  test('a backoff that throws or answers nonsense never costs the outcome', () => {
    const delayOf = (delayMs: () => number): unknown => {
      const broken = { backoff: { delayMs }, maxAttempts: 5 }
      const settled = decide({ attempt: 1, maxAttempts: 5 }, failed(byPolicy), broken, noSpread)
      return settled.kind === 'retry' ? settled.delayMs : settled.kind
    }
    expect(
      delayOf(() => {
        throw new Error('no')
      }),
    ).toBe(60_000)
    expect(delayOf(() => Number.NaN)).toBe(60_000)
    expect(delayOf(() => -5)).toBe(0)
    expect(delayOf(() => Number.POSITIVE_INFINITY)).toBe(366 * 86_400_000)
    expect(delayOf(() => 1.6)).toBe(2)
  })

  test('I10 no interruption ever spends an attempt, and no failure ever gives one back', () => {
    const outcomes = fc.oneof(
      fc.constant<DeliveryOutcome>({ kind: 'interrupted' }),
      fc.nat().map((afterMs): DeliveryOutcome => ({ kind: 'postponed', failure, afterMs })),
      fc.constantFrom(byPolicy, never, after(1)).map(failed),
    )
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 20 }),
        outcomes,
        (attempt, max, outcome) => {
          const settled = decide({ attempt, maxAttempts: max }, outcome, policy, noSpread)
          expect(settled.kind === 'release').toBe(outcome.kind !== 'failed')
        },
      ),
    )
  })
})
