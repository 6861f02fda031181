import type { DeliveryFailure, DeliveryOutcome } from '../delivery/delivery.ts'
import { deliveryFailure } from '../delivery/failure.ts'
import type { DispatchedDelivery } from '../dispatch/attempt.ts'
import type { EventDispatcher } from '../dispatch/dispatcher.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { AttemptInfo, Observer } from '../observe/worker-events.ts'
import type { Clock } from '../runtime/clock.ts'
import { Outage } from '../runtime/outage.ts'
import { textProperty } from '../runtime/property.ts'
import type { Random } from '../runtime/random.ts'
import { describeError } from '../runtime/text.ts'
import { decide } from '../settle/decide.ts'
import type { RetryPolicy } from '../settle/retry-policy.ts'
import type { ReceivedMessage } from './client.ts'
import type { DeadRecord, DeadRecordSink } from './dead-letter-topic.ts'
import type { RecordPlace } from './read-record.ts'

/** What handles messages is made of. */
export interface RecordHandlerParts {
  readonly subscription: string
  readonly dispatcher: EventDispatcher<DispatchedDelivery>
  readonly policy: RetryPolicy
  readonly deadLetters: DeadRecordSink
  readonly observer: Observer
  readonly clock: Clock
  readonly random: Random
  /** The event in a message. @throws where it is none. */
  read(message: ReceivedMessage, place: RecordPlace): OutboxEvent
  /** Whether an event without a handler is left out. */
  isSkipped(event: OutboxEvent): boolean
  /** Told of every event that is handled or left out, before that. */
  onArrived(event: OutboxEvent): void
}

/** What was found out about a message. */
type Decided = { readonly kind: 'handled' } | { readonly kind: 'stopped' } | Died

interface Died {
  readonly kind: 'dead'
  readonly failure: DeliveryFailure
  readonly attempts: number
  readonly event: OutboxEvent | null
}

/** Takes one message to its end: handled, or set aside. */
export class RecordHandler {
  readonly #parts: RecordHandlerParts
  readonly #running = new Map<ReceivedMessage, OutboxEvent>()

  constructor(parts: RecordHandlerParts) {
    this.#parts = parts
  }

  /** True once the message is handled or set aside; false if the signal aborted before. Never rejects. */
  async handle(message: ReceivedMessage, place: RecordPlace, signal: AbortSignal): Promise<boolean> {
    // Of a compacted topic: it says that there is nothing any more.
    if (message.value === null) return true
    const decided = await this.#decide(message, place, signal)
    if (decided.kind === 'stopped') return false
    if (decided.kind === 'handled') return true
    const { subscription, clock } = this.#parts
    const { failure, attempts, event } = decided
    return this.#setAside(
      { ...place, subscription, message, failure, attempts, event, failedAt: clock.now() },
      signal,
    )
  }

  async #decide(message: ReceivedMessage, place: RecordPlace, signal: AbortSignal): Promise<Decided> {
    let event: OutboxEvent
    try {
      event = this.#parts.read(message, place)
    } catch (error) {
      this.#tell('reading a message', error)
      const code = textProperty(error, 'code') ?? 'RECORD_UNREADABLE'
      return { kind: 'dead', event: null, attempts: 0, failure: deliveryFailure(code, describeError(error)) }
    }
    this.#noteArrival(event)
    if (this.#parts.isSkipped(event)) return { kind: 'handled' }
    this.#running.set(message, event)
    const decided = await this.#tryUntilDecided(event, signal)
    this.#running.delete(message)
    return decided
  }

  /** Whoever only watches what arrives must not be able to hold it up. */
  #noteArrival(event: OutboxEvent): void {
    try {
      this.#parts.onArrived(event)
    } catch (error) {
      this.#tell('checking the sequence', error, event)
    }
  }

  #tell(during: string, error: unknown, event: OutboxEvent | null = null): void {
    const { observer, subscription } = this.#parts
    observer({ kind: 'error', during, error, subscription, ...(event === null ? {} : { event }) })
  }

  /** Tells the handler of this message to stop, if one is running. */
  interrupt(message: ReceivedMessage, reason: Error): void {
    const event = this.#running.get(message)
    if (event === undefined) return
    this.#parts.dispatcher.interrupt(reason, { which: (delivery) => delivery.event === event })
  }

  async #tryUntilDecided(event: OutboxEvent, signal: AbortSignal): Promise<Decided> {
    const { dispatcher, policy, clock, random, subscription, observer } = this.#parts
    const { maxAttempts } = policy
    for (let attempt = 1; !signal.aborted; ) {
      const startedMs = clock.monotonicMs()
      const outcome: DeliveryOutcome = await dispatcher.dispatch({ event, attempt, maxAttempts, lease: null })
      const durationMs = clock.monotonicMs() - startedMs
      const settlement = decide({ attempt, maxAttempts }, outcome, policy, random)
      const info: AttemptInfo = { subscription, event, attempt, maxAttempts }
      if (settlement.kind === 'done') {
        observer({ kind: 'handled', durationMs, ...info })
        return { kind: 'handled' }
      }
      if (settlement.kind === 'dead') {
        observer({ kind: 'dead', failure: settlement.failure, durationMs, ...info })
        return { kind: 'dead', failure: settlement.failure, attempts: attempt, event }
      }
      if (settlement.kind === 'retry') {
        observer({
          kind: 'retried',
          failure: settlement.failure,
          delayMs: settlement.delayMs,
          durationMs,
          ...info,
        })
        attempt += 1
      }
      await clock.sleep('delayMs' in settlement ? settlement.delayMs : 0, signal)
    }
    return { kind: 'stopped' }
  }

  /** Until it is kept: what is neither handled nor kept must not be passed over. */
  async #setAside(dead: DeadRecord, signal: AbortSignal): Promise<boolean> {
    const { deadLetters, clock, random } = this.#parts
    const onBegin = (error: unknown): void => this.#tell('setting aside', error, dead.event)
    const outage = new Outage({ random, onBegin })
    for (;;) {
      try {
        await deadLetters.setAside(dead)
        return true
      } catch (error) {
        await clock.sleep(outage.failed(error), signal)
        if (signal.aborted) return false
      }
    }
  }
}
