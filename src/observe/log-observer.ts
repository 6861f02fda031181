import type { DeliveryFailure } from '../delivery/delivery.ts'
import { createMasking, type Masking } from '../event/masking.ts'
import { methodsProblem, refuseProblems } from '../runtime/option-checks.ts'
import { describeError } from '../runtime/text.ts'
import { eventFields, isWanted, LOGGER_METHODS, type Logger } from './logger.ts'
import type { AttemptInfo, Observer, TakenDelivery, WorkerEvent } from './worker-events.ts'

type EventOf<Kind extends WorkerEvent['kind']> = Extract<WorkerEvent, { readonly kind: Kind }>
type LinesOf = {
  readonly [Kind in WorkerEvent['kind']]: (logger: Logger, event: EventOf<Kind>, masking: Masking) => void
}

/**
 * Writes each worker event as one log line, and a claim as one more for each event, with the event's identity on every
 * line about one. Lines for every event that is well are made only where the logger wants them. Payloads are not logged;
 * of errors that quote them, what `masking` hides from logs is masked. Without one nothing of a payload is shown.
 */
export function logObserver(logger: Logger, masking: Masking = createMasking(null)): Observer {
  refuseProblems('logObserver', [
    methodsProblem('logger', logger ?? null, LOGGER_METHODS),
    methodsProblem('masking', masking, ['hidden', 'payload', 'text']),
  ])
  return (event) => {
    // The table is keyed by kind, which TypeScript cannot follow through an index.
    const line = LINES[event.kind] as (logger: Logger, event: WorkerEvent, masking: Masking) => void
    line(logger, event, masking)
  }
}

const LINES: LinesOf = {
  started: (logger, { workerId, subscriptions }) =>
    logger.info({ workerId, subscriptions }, 'worker started'),
  stopping: (logger, { workerId, inHand }) => logger.info({ workerId, inHand }, 'worker is stopping'),
  stopped: (logger, { workerId, released }) => logger.info({ workerId, released }, 'worker stopped'),
  claimed: (logger, { subscription, count, suspects, durationMs, deliveries }) => {
    if (!isWanted(logger, 'debug')) return
    logger.debug({ subscription, count, suspects, durationMs }, 'deliveries claimed')
    for (const delivery of deliveries) logger.debug(takenFields(delivery, subscription), 'event claimed')
  },
  handled: (logger, event, masking) => {
    if (event.failure === undefined && !isWanted(logger, 'debug')) return
    const fields = { ...attemptFields(event), durationMs: event.durationMs }
    if (event.failure === undefined) return logger.debug(fields, 'event handled')
    const failed = failureFields({ ...event, failure: event.failure }, masking)
    logger.warn({ ...fields, ...failed }, 'event handled, but its handler failed after it had completed it')
  },
  retried: (logger, event, masking) =>
    logger.warn(
      {
        ...attemptFields(event),
        ...failureFields(event, masking),
        delayMs: event.delayMs,
        durationMs: event.durationMs,
      },
      'event failed and will be retried',
    ),
  dead: (logger, event, masking) =>
    logger.error(
      { ...attemptFields(event), ...failureFields(event, masking), durationMs: event.durationMs },
      'event failed for good and is a dead letter',
    ),
  released: (logger, event) =>
    logger.info(
      { ...attemptFields(event), why: event.why, delayMs: event.delayMs },
      'event given back without a verdict',
    ),
  leaseLost: (logger, event) =>
    logger.warn(attemptFields(event), 'lease lost: the result of this attempt was not written'),
  finishedLate: (logger, event) =>
    logger.warn(
      {
        ...attemptFields(event),
        after: event.after,
        succeeded: event.succeeded,
        durationMs: event.durationMs,
      },
      'handler finished too late: its result is ignored',
    ),
  recovered: (logger, { subscription, count, suspects, dead }) =>
    logger.warn({ subscription, count, suspects, dead }, 'deliveries of a vanished worker recovered'),
  joiningWaits: (logger, { subscriptions, waitsFor }) =>
    logger.warn(
      { subscriptions, waitsFor },
      'subscriptions are joining and wait for a transaction that was open before: end it, or let it end',
    ),
  retired: (logger, { subscription, retiredBy }) =>
    logger.warn(
      { subscription, retiredBy },
      'subscription was retired and is not served any more: take it out of the code, or restart to register it anew',
    ),
  streaming: (logger, { subscription }) => logger.info({ subscription }, 'reading the log'),
  streamGap: (logger, { subscription, reason }) =>
    logger.error(
      { subscription, reason },
      'the log has lost events of this subscription: they are delivered from the table, some perhaps twice',
    ),
  streamRecovered: (logger, { subscription, count }) =>
    logger.warn({ subscription, count }, 'what the log had lost was delivered from the table'),
  redriven: (logger, { subscription, policy, count, leftToPerson }) =>
    logger.info({ subscription, policy, count, leftToPerson }, 'dead letters re-driven by a policy'),
  retained: (logger, { policy, stream, deleted, archived }) =>
    logger.debug({ policy, stream, deleted, archived }, 'events let go by a policy'),
  unmatched: (logger, { event }) => logger.warn(eventFields(event), 'no subscription takes this event'),
  error: (logger, { during, error, subscription, event }) =>
    logger.error(
      { ...(event && eventFields(event)), subscription, during, error: describeError(error) },
      `${during} failed; the worker goes on`,
    ),
}

function attemptFields(info: AttemptInfo): object {
  return {
    ...eventFields(info.event),
    subscription: info.subscription,
    attempt: info.attempt,
    maxAttempts: info.maxAttempts,
  }
}

function takenFields(delivery: TakenDelivery, subscription: string): object {
  const { event, attempt, maxAttempts, suspect } = delivery
  return { ...attemptFields({ event, subscription, attempt, maxAttempts }), suspect }
}

function failureFields(
  { event, failure }: Pick<AttemptInfo, 'event'> & { readonly failure: DeliveryFailure },
  masking: Masking,
): object {
  return { errorCode: failure.code, errorMessage: masking.text(failure.message, event, 'log') }
}
