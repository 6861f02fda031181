import { InvalidOptionsError } from '../runtime/errors.ts'
import { shown, wholeNumberProblem } from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import { type Backoff, exponential } from './backoff.ts'

/** How often and how soon a failed delivery is tried again. */
export interface RetryOptions {
  /**
   * The pause after each failed attempt.
   * @default exponential({ base: '1s', factor: 2, cap: '300s', jitter: 0.2 })
   */
  readonly backoff?: Backoff
  /**
   * How many ATTEMPTS a delivery gets, the first included: 5 means one first try and four retries, and the fifth
   * failure makes it a dead letter. 1 means no retry at all.
   * @default 5
   */
  readonly maxAttempts?: number
}

/** Retry options with every default filled in. */
export type RetryPolicy = Readonly<Required<RetryOptions>>

/** The attempts a delivery gets unless its subscription says otherwise. */
export const DEFAULT_MAX_ATTEMPTS = 5

const MOST_ATTEMPTS = 10_000

/** Fills in the defaults; throws `InvalidOptionsError` with all problems together. */
export function resolveRetryPolicy(options: RetryOptions = {}, what = 'retry policy'): RetryPolicy {
  const problems = retryProblems(options)
  if (problems.length > 0) throw new InvalidOptionsError(what, problems)
  return {
    backoff: options.backoff ?? defaultBackoff(),
    maxAttempts: options.maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
  }
}

/** What is wrong with retry options, for a caller that collects the problems of several groups. */
export function retryProblems(options: {
  readonly backoff?: unknown
  readonly maxAttempts?: unknown
}): string[] {
  const { backoff, maxAttempts = DEFAULT_MAX_ATTEMPTS } = options
  const problems: string[] = []
  if (wholeNumberProblem('maxAttempts', maxAttempts, 1, MOST_ATTEMPTS) !== null) {
    problems.push(
      `maxAttempts counts attempts, the first included: it must be a whole number from 1 to ${MOST_ATTEMPTS}, ` +
        `but is ${shown(maxAttempts)}`,
    )
  }
  if (backoff !== undefined && typeof property(backoff, 'delayMs') !== 'function') {
    problems.push("retry must come from exponential(), schedule() or fixed(), or have a method 'delayMs'")
  }
  return problems
}

function defaultBackoff(): Backoff {
  return exponential({ base: '1s', factor: 2, cap: 300_000, jitter: 0.2 })
}
