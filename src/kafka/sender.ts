import type { DeliveryFailure } from '../delivery/delivery.ts'
import { withDeadline } from '../runtime/abort.ts'
import type { Clock } from '../runtime/clock.ts'
import { CommitpostError, InvalidOptionsError } from '../runtime/errors.ts'
import type { Random } from '../runtime/random.ts'
import { describeError } from '../runtime/text.ts'
import { Breaker } from './breaker.ts'
import { classifySendError, type SendVerdict } from './broker-error.ts'
import type { KafkaProducer, PreparedMessage } from './client.ts'
import { believedWhileLeadersStay } from './leader-watch.ts'
import {
  batchOf,
  type Item,
  keyOf,
  type Outgoing,
  parted,
  requestsOf,
  topicOf,
  unwrittenOf,
} from './request.ts'

/** What became of one record. */
export type SendResult =
  | { readonly kind: 'sent' }
  /** Sending it again cannot help. */
  | { readonly kind: 'refused'; readonly failure: DeliveryFailure }
  | { readonly kind: 'failed'; readonly failure: DeliveryFailure }
  /** It was not tried, or what became of it is not known, because the caller gave up or an earlier one of its key failed. */
  | { readonly kind: 'unsent' }

/** What a sender is made of. */
export interface SenderParts {
  readonly producer: () => KafkaProducer
  readonly clock: Clock
  readonly random: Random
  /** How long one try may take, in milliseconds. */
  readonly timeoutMs: number
  /** How many bytes go in one request at most, unless one record alone is larger. */
  readonly maxRequestBytes: number
  /** Told of the first failure of each outage. */
  onOutage(error: CommitpostError): void
}

const SENT: SendResult = { kind: 'sent' }
const UNSENT: SendResult = { kind: 'unsent' }
const LONGEST_GOODBYE_MS = 5_000

/**
 * Sends records and finds out what became of each.
 *
 * Clients tell of a batch only that it failed, and some of it may have been written. So what fails is cut into smaller
 * parts until it is clear which record it is about. After every failure there is a new producer: an idempotent one
 * numbers its requests, and one that lost count would have its next records taken for repetitions and dropped.
 */
export class Sender {
  readonly #parts: SenderParts
  #producer: KafkaProducer | null = null
  #isConnected = false
  readonly #breaker: Breaker

  constructor(parts: SenderParts) {
    this.#parts = parts
    this.#breaker = new Breaker({
      random: parts.random,
      onOpen: (error) => parts.onOutage(unavailable(error)),
    })
  }

  /** Makes the first producer. @throws InvalidOptionsError if it is not idempotent. */
  open(): void {
    this.#producer ??= believedWhileLeadersStay(idempotent(this.#parts.producer()))
  }

  /**
   * Sends the records, in this order, and resolves with what became of each. While the brokers are down it waits and
   * tries again, until the signal aborts. Never rejects.
   */
  async send(batch: readonly Outgoing[], signal: AbortSignal): Promise<readonly SendResult[]> {
    const results: SendResult[] = batch.map(() => UNSENT)
    const stopped = new Set<string>()
    const items = batch.map((outgoing, index) => ({ outgoing, index }))
    for (const request of requestsOf(items, this.#parts.maxRequestBytes)) {
      await this.#deliver(request, results, stopped, signal)
    }
    return results
  }

  /** Does what can be done for a record before its turn, while others are under way. */
  prepare(outgoing: Outgoing): void {
    const prepared = this.#producer?.prepare?.(outgoing.record)
    if (prepared !== undefined) outgoing.prepared = prepared
  }

  /** Disconnects. The next send connects anew. */
  async close(): Promise<void> {
    await this.#discard()
  }

  async #deliver(
    given: readonly Item[],
    results: SendResult[],
    stopped: Set<string>,
    signal: AbortSignal,
  ): Promise<void> {
    const items = stopped.size === 0 ? given : given.filter((item) => !stopped.has(keyOf(item)))
    if (items.length === 0) return
    const answered = await this.#provenAnswerTo(items, results, signal)
    if (isClear(answered)) return this.#note(answered, results, stopped)
    for (const part of parted(answered.items)) await this.#deliver(part, results, stopped, signal)
  }

  #note({ items, answer }: Answered, results: SendResult[], stopped: Set<string>): void {
    for (const item of items) {
      if (answer !== 'gave up') results[item.index] = answer === 'sent' ? SENT : resultOf(answer)
      if (answer !== 'sent') stopped.add(keyOf(item))
    }
  }

  /** A topic that nobody knows may only not be known yet, to a broker that has just begun: it is asked for twice. */
  async #provenAnswerTo(
    items: readonly Item[],
    results: SendResult[],
    signal: AbortSignal,
  ): Promise<Answered> {
    const first = await this.#answerTo(items, results, signal)
    return isAboutAll(first) ? this.#answerTo(first.items, results, signal) : first
  }

  /** The answer, and to which of the records: those that were written although others were not are noted as sent. */
  async #answerTo(given: readonly Item[], results: SendResult[], signal: AbortSignal): Promise<Answered> {
    const breaker = this.#breaker
    const { clock } = this.#parts
    let items = given
    for (;;) {
      const waitMs = breaker.waitMs(clock.monotonicMs())
      if (waitMs > 0) await clock.sleep(waitMs, signal)
      if (signal.aborted) {
        if (waitMs === 0) breaker.gaveUp(clock.monotonicMs())
        return { items, answer: 'gave up' }
      }
      if (waitMs > 0) continue
      const written: (readonly PreparedMessage[])[] = []
      const answer = await this.#try(items, written)
      if (answer !== 'sent') items = this.#without(items, written, results)
      const last = items.length === 0 ? 'sent' : answer
      if (last === 'sent' || last.kind !== 'unavailable') {
        breaker.answered()
        return { items, answer: last }
      }
    }
  }

  #without(
    items: readonly Item[],
    written: readonly (readonly PreparedMessage[])[],
    results: SendResult[],
  ): readonly Item[] {
    const left = unwrittenOf(items, written)
    const isLeft = new Set(left)
    for (const item of items) if (!isLeft.has(item)) results[item.index] = SENT
    return left
  }

  /** What is written is noted in `written`, where the producer tells of it. */
  async #try(items: readonly Item[], written: (readonly PreparedMessage[])[]): Promise<SendVerdict | 'sent'> {
    const { clock, timeoutMs } = this.#parts
    try {
      const deadline = { clock, timeoutMs, what: 'Kafka' }
      await withDeadline(deadline, async (inTime) => {
        const producer = await this.#connected()
        // Too late, somebody else may be sending it by now.
        if (!inTime.aborted) await sendBy(producer, items, (each) => written.push(each))
      })
      return 'sent'
    } catch (error) {
      // Connecting concerns nobody's record; and a producer that failed may have lost count of what it sent.
      const verdict: SendVerdict = this.#isConnected ? classifySendError(error) : { kind: 'unavailable' }
      void this.#discard()
      if (verdict.kind === 'unavailable') this.#breaker.failed(clock.monotonicMs(), error)
      return verdict
    }
  }

  async #connected(): Promise<KafkaProducer> {
    this.open()
    const producer = this.#producer as KafkaProducer
    if (this.#isConnected) return producer
    await producer.connect()
    if (this.#producer === producer) this.#isConnected = true
    return producer
  }

  async #discard(): Promise<void> {
    const producer = this.#producer
    this.#producer = null
    this.#isConnected = false
    if (producer === null) return
    const deadline = { clock: this.#parts.clock, timeoutMs: LONGEST_GOODBYE_MS, what: 'Kafka' }
    // One that cannot even say goodbye is not needed any more.
    await withDeadline(deadline, async () => producer.disconnect()).catch(() => {})
  }
}

/** Whether it is known of each of the records what the answer means for it. */
function isClear(answered: Answered): boolean {
  const { items, answer } = answered
  return answer === 'sent' || answer === 'gave up' || items.length === 1 || isAboutAll(answered)
}

function isAboutAll({ answer, items: [first, ...rest] }: Answered): boolean {
  if (answer === 'sent' || answer === 'gave up') return false
  if (answer.kind !== 'refused' || !answer.isAboutTopic) return false
  return rest.every((item) => topicOf(item) === (first && topicOf(first)))
}

function resultOf({ kind, failure }: Answer): SendResult {
  return { kind, failure }
}

type Answer = Exclude<SendVerdict, { readonly kind: 'unavailable' }>

/** The answer to these records. */
interface Answered {
  readonly items: readonly Item[]
  readonly answer: Answer | 'sent' | 'gave up'
}

function idempotent(producer: KafkaProducer): KafkaProducer {
  if (producer.isIdempotent?.() !== false) return producer
  throw new InvalidOptionsError('the Kafka producer', [
    'it must be idempotent, or its own retries could write twice and out of order: ' +
      'kafka.producer({ idempotent: true, maxInFlightRequests: 1 })',
  ])
}

function sendBy(
  producer: KafkaProducer,
  items: readonly Item[],
  onWritten: (messages: readonly PreparedMessage[]) => void,
): Promise<unknown> {
  if (producer.prepare === undefined || producer.sendPrepared === undefined) {
    return producer.sendBatch(batchOf(items))
  }
  const topics = new Map<string, PreparedMessage[]>()
  for (const { outgoing } of items) {
    outgoing.prepared ??= producer.prepare(outgoing.record)
    const known = topics.get(outgoing.record.topic)
    if (known === undefined) topics.set(outgoing.record.topic, [outgoing.prepared])
    else known.push(outgoing.prepared)
  }
  return producer.sendPrepared(topics, onWritten)
}

function unavailable(error: unknown): CommitpostError {
  return new CommitpostError(
    'BROKER_UNAVAILABLE',
    `Kafka cannot be reached, or cannot take messages: ${describeError(error)}. What is to be sent waits in hand; no ` +
      'attempt is spent, and it is sent as soon as Kafka answers. See whether the brokers run and the addresses are right.',
    { cause: error },
  )
}
