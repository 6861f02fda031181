import type { ClaimedDelivery, DeliveryOutcome } from '../delivery/delivery.ts'
import { deliveryFailure } from '../delivery/failure.ts'
import type { OutboxEvent } from '../event/event.ts'
import { combineObservers, type Observer } from '../observe/worker-events.ts'
import { CommitpostError, HandlerTimeoutError } from '../runtime/errors.ts'
import { property } from '../runtime/property.ts'
import { describeError } from '../runtime/text.ts'
import { Attempt, type DispatchedDelivery } from './attempt.ts'
import { AttemptContext, type ContextParts } from './context.ts'
import { CATCH_ALL, type Handler } from './handler.ts'
import {
  type DispatcherOptions,
  type ResolvedDispatcherOptions,
  resolveDispatcherOptions,
} from './options.ts'
import { RunningAttempts } from './running-attempts.ts'
import { wrapHandlers } from './wrap-handlers.ts'

/** How to interrupt running handlers. */
export interface InterruptOptions<Delivery> {
  /**
   * How long a handler may still finish by itself after its signal aborted, in milliseconds.
   * @default 0
   */
  readonly graceMs?: number
  /** @default all that are running */
  readonly which?: (delivery: Delivery) => boolean
}

/**
 * Runs the handlers of one subscription, wherever its events come from: the queue, the log or a Kafka consumer.
 * It decides nothing about retries and writes nothing down: it reports how each attempt ended.
 */
export interface EventDispatcher<Delivery extends DispatchedDelivery = ClaimedDelivery> {
  /** Hands one event over. Never throws and never rejects; a handler that finishes synchronously costs no promise. */
  dispatch(delivery: Delivery): DeliveryOutcome | Promise<DeliveryOutcome>
  /**
   * Aborts the signals of running handlers and, after the grace, reports their attempts as interrupted whether they
   * react or not. One that succeeds within the grace without having looked at its signal is handled all the same.
   * Returns how many were running.
   */
  interrupt(reason: Error, options?: InterruptOptions<Delivery>): number
  /** Whether there is a handler, `'*'` included, for this event type. */
  handles(type: string): boolean
  /** Handlers that have not come back yet. */
  readonly running: number
  /** Handlers that have not come back although their attempt is over: they ignore their signal. */
  readonly abandoned: number
}

const HANDLED: DeliveryOutcome = { kind: 'handled' }
const COMPLETED: DeliveryOutcome = { kind: 'handled', completed: true }
const INTERRUPTED: DeliveryOutcome = { kind: 'interrupted' }
const COMPLETION = { completed: true } as const
const NO_COMPLETION = {} as const
const COMPLETED_AND_INTERRUPTED: DeliveryOutcome = { kind: 'interrupted', completed: true }

/** Makes the dispatcher of one subscription. Throws `InvalidOptionsError` with all problems together. */
export function createDispatcher<Delivery extends DispatchedDelivery = ClaimedDelivery>(
  options: DispatcherOptions<Delivery>,
): EventDispatcher<Delivery> {
  return new HandlerDispatcher(resolveDispatcherOptions(options))
}

class HandlerDispatcher<Delivery extends DispatchedDelivery> implements EventDispatcher<Delivery> {
  readonly #options: ResolvedDispatcherOptions<Delivery>
  readonly #handlers: ReadonlyMap<string, Handler>
  readonly #catchAll: Handler | undefined
  readonly #contextParts: ContextParts<Delivery>
  readonly #observe: Observer
  readonly #running: RunningAttempts<Delivery>
  #abandoned = 0

  constructor(options: ResolvedDispatcherOptions<Delivery>) {
    this.#options = options
    this.#handlers = new Map(Object.entries(wrapHandlers(options.handlers, options.middleware)))
    this.#catchAll = this.#handlers.get(CATCH_ALL)
    this.#contextParts = options
    this.#observe = combineObservers([options.observer])
    this.#running = new RunningAttempts({
      clock: options.clock,
      timeoutMs: options.timeoutMs,
      onTimeout: (attempt) => this.#timedOut(attempt),
    })
  }

  get running(): number {
    return this.#running.count
  }

  get abandoned(): number {
    return this.#abandoned
  }

  handles(type: string): boolean {
    return this.#handlers.has(type) || this.#catchAll !== undefined
  }

  dispatch(delivery: Delivery): DeliveryOutcome | Promise<DeliveryOutcome> {
    const attempt = new Attempt(delivery)
    try {
      const read = this.#options.reader.read(delivery.event)
      const result =
        read instanceof Promise ? this.#handOverWhenRead(attempt, read) : this.#handOver(attempt, read)
      if (isThenable(result)) return this.#wait(attempt, result)
      return attempt.completed ? COMPLETED : HANDLED
    } catch (error) {
      return this.#outcomeOf(error, attempt)
    }
  }

  interrupt(reason: Error, { graceMs = 0, which }: InterruptOptions<Delivery> = {}): number {
    const all = this.#running.all()
    const struck = which === undefined ? all : all.filter((attempt) => which(attempt.delivery))
    for (const attempt of struck) attempt.end({ why: 'interruption', reason })
    if (graceMs <= 0) this.#abandon(struck)
    else void this.#options.clock.sleep(graceMs).then(() => this.#abandon(struck))
    return struck.length
  }

  #handOver(attempt: Attempt<Delivery>, read: OutboxEvent | undefined): unknown {
    const event = read ?? attempt.event
    const handler = (read === undefined ? undefined : this.#handlers.get(read.type)) ?? this.#catchAll
    if (handler === undefined) {
      throw read === undefined ? unknownType(event) : noHandler(this.#options.subscription, event)
    }
    attempt.event = event
    attempt.handed = true
    return handler(event, new AttemptContext(attempt, this.#contextParts))
  }

  async #handOverWhenRead(
    attempt: Attempt<Delivery>,
    read: PromiseLike<OutboxEvent | undefined>,
  ): Promise<void> {
    const event = await read
    // Ended while it was read: nobody would learn what the handler does now.
    if (attempt.ending !== null) throw attempt.ending.reason
    await this.#handOver(attempt, event)
  }

  #wait(attempt: Attempt<Delivery>, result: PromiseLike<unknown>): Promise<DeliveryOutcome> {
    const outcome = attempt.outcome()
    this.#running.add(attempt)
    void Promise.resolve(result).then(
      () => this.#cameBack(attempt, true, undefined),
      (error: unknown) => this.#cameBack(attempt, false, error),
    )
    return outcome
  }

  #cameBack(attempt: Attempt<Delivery>, succeeded: boolean, error: unknown): void {
    if (attempt.over) return this.#cameBackLate(attempt, succeeded)
    this.#running.remove(attempt)
    if (succeeded && didItsWork(attempt)) return attempt.settle(attempt.completed ? COMPLETED : HANDLED)
    // Whatever a handler does once it was told to stop is the interruption's doing, not the event's.
    attempt.settle(attempt.ending === null ? this.#outcomeOf(error, attempt) : interrupted(attempt))
  }

  #cameBackLate(attempt: Attempt<Delivery>, succeeded: boolean): void {
    this.#abandoned -= 1
    const { event, delivery } = attempt
    this.#observe({
      kind: 'finishedLate',
      after: attempt.ending?.why ?? 'interruption',
      succeeded,
      durationMs: this.#options.clock.monotonicMs() - attempt.startedMs,
      subscription: this.#options.subscription,
      event,
      attempt: delivery.attempt,
      maxAttempts: delivery.maxAttempts,
    })
  }

  #timedOut(attempt: Attempt<Delivery>): void {
    this.#abandoned += 1
    if (attempt.ending !== null) return attempt.settle(interrupted(attempt))
    const { subscription, timeoutMs } = this.#options
    const error = new HandlerTimeoutError({ eventId: attempt.event.eventId, subscription }, timeoutMs ?? 0)
    attempt.end({ why: 'timeout', reason: error })
    attempt.settle(this.#outcomeOf(error, attempt))
  }

  #abandon(attempts: readonly Attempt<Delivery>[]): void {
    for (const attempt of attempts) {
      if (attempt.over) continue
      this.#abandoned += 1
      this.#running.remove(attempt)
      attempt.settle(interrupted(attempt))
    }
  }

  #outcomeOf(error: unknown, attempt: Attempt<Delivery>): DeliveryOutcome {
    const completed = attempt.completed ? COMPLETION : NO_COMPLETION
    try {
      const { code, message, retry } = this.#options.classify(error, attempt.event)
      const failure = { code, message }
      const afterMs =
        !attempt.handed && needsNewerCode(error) ? this.#options.onNoHandler(attempt.event) : null
      return afterMs === null
        ? { kind: 'failed', failure, retry, ...completed }
        : { kind: 'postponed', failure, afterMs }
    } catch (fault) {
      // Both are handed in. One that throws must not cost the outcome, nor hide what happened to the event.
      const message = `${describeError(error)}; and judging that failed: ${describeError(fault)}`
      return {
        kind: 'failed',
        failure: deliveryFailure('HANDLER_ERROR', message),
        retry: { kind: 'by-policy' },
        ...completed,
      }
    }
  }
}

function interrupted(attempt: Attempt): DeliveryOutcome {
  return attempt.completed ? COMPLETED_AND_INTERRUPTED : INTERRUPTED
}

/**
 * Returning means success, but not for a handler that was told to stop and could have heard it: it may have returned
 * early. Running an event twice is allowed, losing it is not.
 */
function didItsWork(attempt: Attempt): boolean {
  return attempt.ending === null || attempt.completed || !attempt.signalWasRead
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value === undefined || value === null) return false
  return value instanceof Promise || typeof (value as { readonly then?: unknown }).then === 'function'
}

function noHandler(subscription: string, event: OutboxEvent): CommitpostError {
  return new CommitpostError(
    'NO_HANDLER',
    `Subscription "${subscription}" has no handler for events of type "${event.type}" (event ${event.eventId}). ` +
      `Add one under "${event.type}" or "${CATCH_ALL}", deploy, and retry the dead letter.`,
  )
}

function unknownType(event: OutboxEvent): CommitpostError {
  return new CommitpostError(
    'UNKNOWN_EVENT_TYPE',
    `The catalogue of this process has no event stored as "${event.type}" (event ${event.eventId}). ` +
      'Add it to the catalogue, or deploy the version that has it here too, and retry the dead letter.',
  )
}

function needsNewerCode(error: unknown): boolean {
  const code = property(error, 'code')
  return code === 'NO_HANDLER' || code === 'UNKNOWN_EVENT_TYPE' || property(error, 'newerThanCode') === true
}
