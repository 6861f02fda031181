import type { DeliveryFailure, DeliveryOutcome, RetryAdvice, Settlement } from '../delivery/delivery.ts'
import { deliveryFailure, NOT_COMMITTED } from '../delivery/failure.ts'
import { DONE, RELEASE_NOW } from '../delivery/settlements.ts'
import type { Random } from '../runtime/random.ts'
import type { RetryPolicy } from './retry-policy.ts'

/** What a decision needs to know about a delivery. Its own `maxAttempts` rules, not the policy's of today. */
export interface AttemptFacts {
  /** The attempt that just ended, 1 for the first. */
  readonly attempt: number
  readonly maxAttempts: number
}

const LONGEST_DELAY_MS = 366 * 86_400_000
const FALLBACK_DELAY_MS = 60_000
const SPREAD_SHARE = 0.1
const LONGEST_SPREAD_MS = 5_000

/**
 * What is to be written down for an attempt that ended so; of one that completed its delivery in its own transaction,
 * if that was rolled back. Pure and total: it never throws, whatever comes in.
 */
export function decide(
  facts: AttemptFacts,
  outcome: DeliveryOutcome,
  policy: RetryPolicy,
  random: Random,
): Settlement {
  switch (outcome.kind) {
    case 'handled':
      // Asked for only if what the handler completed turns out to be rolled back.
      return outcome.completed === true
        ? afterFailure(facts, NOT_COMMITTED, { kind: 'by-policy' }, policy, random)
        : DONE
    case 'interrupted':
      return RELEASE_NOW
    case 'postponed':
      return { kind: 'release', delayMs: soundDelayMs(outcome.afterMs) }
    case 'failed':
      return afterFailure(facts, outcome.failure, outcome.retry, policy, random)
    default:
      return outcome satisfies never
  }
}

function afterFailure(
  facts: AttemptFacts,
  failure: DeliveryFailure,
  advice: RetryAdvice,
  policy: RetryPolicy,
  random: Random,
): Settlement {
  if (advice.kind === 'never') return { kind: 'dead', failure }
  if (facts.attempt >= facts.maxAttempts) return { kind: 'dead', failure: exhausted(facts, failure) }
  const delayMs =
    advice.kind === 'after'
      ? notBeforeMs(advice.delayMs, random)
      : policyDelayMs(policy, facts.attempt, random)
  return { kind: 'retry', delayMs: soundDelayMs(delayMs), failure }
}

function exhausted(facts: AttemptFacts, failure: DeliveryFailure): DeliveryFailure {
  // First, because long messages are cut at the end. What happened, not how it stands: the text outlives a re-drive.
  const what =
    facts.attempt === 1 ? 'The only attempt failed' : `All ${facts.attempt} attempts failed, the last`
  return deliveryFailure(failure.code, `${what} with: ${failure.message}`)
}

// A destination that answers "come back in 30 s" to a thousand deliveries must not meet all of them at second 30;
// bounded, because a handler that asks for 24 hours means 24 hours.
function notBeforeMs(delayMs: number, random: Random): number {
  return Math.round(delayMs + Math.min(delayMs * SPREAD_SHARE, LONGEST_SPREAD_MS) * random())
}

function policyDelayMs(policy: RetryPolicy, failedAttempts: number, random: Random): number {
  try {
    return policy.backoff.delayMs(failedAttempts, random)
  } catch {
    // A user's own backoff that throws must not cost the outcome it was asked about.
    return FALLBACK_DELAY_MS
  }
}

function soundDelayMs(delayMs: number): number {
  if (Number.isNaN(delayMs)) return FALLBACK_DELAY_MS
  return Math.min(Math.max(0, Math.round(delayMs)), LONGEST_DELAY_MS)
}
