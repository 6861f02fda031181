import type { RetryAdvice } from '../delivery/delivery.ts'
import { type ClassifiedFailure, type Classify, deliveryFailure, isFailureCode } from '../delivery/failure.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { Clock } from '../runtime/clock.ts'
import { functionProblem, methodsProblem, refuseProblems } from '../runtime/option-checks.ts'
import { property, textProperty } from '../runtime/property.ts'
import { describeError } from '../runtime/text.ts'
import { adviceOfDatabase, adviceOfNetwork, adviceOfOwn, adviceOfValidation } from './error-kinds.ts'
import { adviceOfHttp, httpStatusOf } from './http-failure.ts'

/**
 * A user's own view of an error: 'retry' by the policy, 'dead' at once, not before `retryAfterMs`, or undefined to
 * leave it to the defaults. It must not wait: whatever it returns or throws beyond that counts as undefined.
 */
export type ErrorClassifier = (
  error: unknown,
  event: OutboxEvent,
) => 'retry' | 'dead' | { readonly retryAfterMs: number } | undefined

type Recogniser = (error: unknown, nowMs: number) => RetryAdvice | null

const RECOGNISERS: readonly Recogniser[] = [
  adviceOfOwn,
  adviceOfHttp,
  adviceOfValidation,
  adviceOfDatabase,
  adviceOfNetwork,
]

const BY_POLICY: RetryAdvice = { kind: 'by-policy' }
const DEEPEST_CAUSE = 5

/** A classifier that asks the user's own first and falls back to `classifyError`. */
export function createClassify(clock: Clock, own?: ErrorClassifier): Classify {
  refuseProblems('createClassify', [
    methodsProblem('clock', clock ?? null, ['now']),
    functionProblem('the classifier', own),
  ])
  if (own === undefined) return (error) => classifyError(error, clock.now())
  return (error, event) => {
    const classified = classifyError(error, clock.now())
    const retry = adviceOfUser(own, error, event)
    return retry === null ? classified : { ...classified, retry }
  }
}

/**
 * The defaults. Looked for in the error and then in its causes, the outermost that is recognised decides:
 * what cannot heal (validation, bad data, most 4xx) dies at once, what may heal follows the policy, and what names
 * its own time (Retry-After, RetryLaterError) waits for it. An error nobody recognises follows the policy.
 */
export function classifyError(error: unknown, now: Date): ClassifiedFailure {
  const message = describeError(error)
  const seen = new Set<unknown>()
  let level = error
  while (level !== undefined && level !== null && !seen.has(level) && seen.size <= DEEPEST_CAUSE) {
    seen.add(level)
    const retry = adviceOf(level, now.getTime())
    if (retry !== null) return { ...deliveryFailure(codeOf(level), message), retry }
    level = property(level, 'cause')
  }
  return { ...deliveryFailure(codeOf(error), message), retry: BY_POLICY }
}

function adviceOf(error: unknown, nowMs: number): RetryAdvice | null {
  for (const recognise of RECOGNISERS) {
    const advice = recognise(error, nowMs)
    if (advice !== null) return advice
  }
  return null
}

function codeOf(error: unknown): string {
  for (const code of [property(error, 'failureCode'), property(error, 'code')]) {
    if (isFailureCode(code)) return code
  }
  const status = httpStatusOf(error)
  return status === null ? classCode(error) : `HTTP_${status}`
}

// `name` first: it survives minifiers. 'Error' says nothing; a class that did not set it has its own name.
function classCode(error: unknown): string {
  for (const name of [textProperty(error, 'name'), textProperty(property(error, 'constructor'), 'name')]) {
    if (name === undefined || name === 'Error' || name === 'Object' || name.length < 3) continue
    const code = upperSnake(name)
    if (isFailureCode(code)) return code
  }
  return 'HANDLER_ERROR'
}

function upperSnake(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toUpperCase()
}

function adviceOfUser(own: ErrorClassifier, error: unknown, event: OutboxEvent): RetryAdvice | null {
  try {
    const answer = own(error, event)
    if (answer === 'dead') return { kind: 'never' }
    if (answer === 'retry') return BY_POLICY
    const delayMs = property(answer, 'retryAfterMs')
    return typeof delayMs === 'number' && delayMs >= 0 ? { kind: 'after', delayMs } : null
  } catch {
    // A classifier that fails must not hide the failure it was asked about.
    return null
  }
}
