import { expect, test } from 'vitest'
import { attemptsOf } from '../../src/cli/letter-attempts.ts'
import type { DeadLetter } from '../../src/store/dead-letter-store.ts'

const letter = (facts: Partial<DeadLetter>): DeadLetter => facts as DeadLetter

const attempted = (...attempts: readonly number[]): DeadLetter['attemptHistory'] =>
  attempts.map((attempt) => ({
    attempt,
    at: '1970-01-01T00:00:00Z',
    worker: 'w',
    durationMs: 1,
    code: 'X',
    message: 'no',
  }))

test.each([
  ['NON_RETRYABLE', 'it failed', [1], 1],
  ['MOVED_ASIDE', 'Not delivered: its ordering key was blocked', [], 0],
  ['MOVED_ASIDE', 'Not delivered: its ordering key was blocked', [1], 1],
  ['MOVED_ASIDE', 'Not delivered: it was retried by a person before', [5], 0],
  ['NO_SUBSCRIPTION', 'No subscription takes events', [], 0],
  ['SUBSCRIPTION_RETIRED', 'Not delivered: its subscription was retired.', [], 0],
  ['SUBSCRIPTION_RETIRED', 'Its subscription was retired while worker w had it in hand', [], 1],
] as const)('%s (%s) with the history %j was tried %d times', (reason, errorMessage, history, times) => {
  const dead = letter({ reason, errorMessage, retryCount: 0, attemptHistory: attempted(...history) })
  expect(attemptsOf(dead)).toBe(times)
})

test('a count of retries is believed whatever made it dead', () => {
  const dead = letter({ reason: 'MOVED_ASIDE', errorMessage: '', retryCount: 2, attemptHistory: [] })
  expect(attemptsOf(dead)).toBe(3)
})
