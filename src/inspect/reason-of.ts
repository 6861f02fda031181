import type { EventTrace, SubscriptionTrace, TracedDelivery } from '../store/event-trace.ts'
import type { Reason } from './reason.ts'

/** The one thing that keeps an event from a subscription: what would have to change first. */
export function reasonOf(trace: SubscriptionTrace, waitsFor: EventTrace['waitsFor']): Reason {
  const { delivery } = trace
  if (delivery === null) return withoutDelivery(trace, waitsFor)
  switch (delivery.status) {
    case 'DONE':
      return { kind: 'delivered', at: delivery.processedAt as Date, attempts: delivery.attempts }
    case 'DEAD':
      return {
        kind: 'dead',
        deadLetter: trace.letter?.id ?? null,
        errorCode: delivery.errorCode,
        errorMessage: delivery.errorMessage,
        resolvedBy: trace.letter?.resolvedBy ?? null,
        redriveAt: trace.letter?.redriveAt ?? null,
      }
    case 'PROCESSING':
      return inHand(delivery, trace.hasLiveWorker)
    case 'PENDING':
      return pending(trace, delivery, waitsFor)
    default:
      return delivery.status satisfies never
  }
}

function withoutDelivery(trace: SubscriptionTrace, waitsFor: EventTrace['waitsFor']): Reason {
  if (trace.replacedBy !== null) return { kind: 'replaced', by: trace.replacedBy }
  if (!trace.matches) return { kind: 'not-taken' }
  if (!trace.started) return { kind: 'before-start' }
  if (trace.log !== null) return inLog(trace)
  return trace.state === 'joining' ? { kind: 'joining', waitsFor } : { kind: 'missing' }
}

function inLog({ log, pausedBy, pausedAt, hasLiveWorker }: SubscriptionTrace): Reason {
  if (log === 'past') return { kind: 'streamed' }
  if (pausedBy !== null && pausedAt !== null) return { kind: 'paused', by: pausedBy, at: pausedAt }
  return { kind: 'in-log', hasLiveWorker }
}

function inHand(delivery: TracedDelivery, hasLiveWorker: boolean): Reason {
  const worker = delivery.lockedBy as string
  const until = delivery.lockedUntil as Date
  if (delivery.isLapsed) return { kind: 'lapsed', worker, until, hasLiveWorker }
  return { kind: 'leased', worker, until, attempt: delivery.attempts, maxAttempts: delivery.maxAttempts }
}

function pending(
  trace: SubscriptionTrace,
  delivery: TracedDelivery,
  waitsFor: EventTrace['waitsFor'],
): Reason {
  const { pausedBy, pausedAt, behind } = trace
  if (pausedBy !== null && pausedAt !== null) return { kind: 'paused', by: pausedBy, at: pausedAt }
  if (!trace.hasLiveWorker) return { kind: 'no-worker' }
  if (!trace.isServed) return { kind: 'joining', waitsFor }
  if (behind !== null) return { kind: 'behind', ...behind }
  const { nextRetryAt, isRetryAhead, attempts, maxAttempts, errorCode, errorMessage } = delivery
  if (delivery.suspect) return { kind: 'suspect', at: isRetryAhead ? nextRetryAt : null }
  if (isRetryAhead && nextRetryAt !== null) {
    return { kind: 'retrying', at: nextRetryAt, attempts, maxAttempts, errorCode, errorMessage }
  }
  return { kind: 'ready', attempts }
}
