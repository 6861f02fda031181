import type { DeliveryFailure } from '../delivery/delivery.ts'
import { withDeadline } from '../runtime/abort.ts'
import type { Clock } from '../runtime/clock.ts'
import { CommitpostError, InvalidOptionsError } from '../runtime/errors.ts'
import type { Random } from '../runtime/random.ts'
import { describeError } from '../runtime/text.ts'
import { Breaker } from './breaker.ts'
import { classifySendError, type SendVerdict } from './broker-error.ts'
import type { KafkaProducer, KafkaTopicMessages, PreparedMessage } from './client.ts'
import type { KafkaRecord } from './record.ts'

/** A record, and what must keep its order. */
export interface Outgoing {
  readonly record: KafkaRecord
  /** Once one of a key is not sent, nothing later of it is. */
  readonly orderingKey: string
  /** The record as the producer sends it, where it can be prepared and was. */
  prepared?: PreparedMessage
}

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
/** What a record has beside its texts, roughly. */
const RECORD_OVERHEAD = 64
const LONGEST_GOODBYE_MS = 5_000

/** One record on its way, and its place in the answer. */
interface Item {
  readonly outgoing: Outgoing
  readonly index: number
}

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
    this.#producer ??= idempotent(this.#parts.producer())
  }

  /**
   * Sends the records, in this order, and resolves with what became of each. While the brokers are down it waits and
   * tries again, until the signal aborts. Never rejects.
   */
  async send(batch: readonly Outgoing[], signal: AbortSignal): Promise<readonly SendResult[]> {
    const results: SendResult[] = batch.map(() => UNSENT)
    const stopped = new Set<string>()
    const items = batch.map((outgoing, index) => ({ outgoing, index }))
    for (const request of this.#requests(items)) await this.#deliver(request, results, stopped, signal)
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
    const verdict = await this.#answerTo(items, signal)
    if (verdict === 'gave up' || verdict === 'sent') return this.#note(items, verdict, results, stopped)
    // A topic that nobody knows may only not be known yet, to a broker that has just begun: it is asked for twice.
    const proven = isAboutAll(verdict, items) ? await this.#answerTo(items, signal) : verdict
    const isClear = proven === 'gave up' || proven === 'sent' || isAboutAll(proven, items)
    if (isClear || items.length === 1) return this.#note(items, proven, results, stopped)
    for (const part of parted(items)) await this.#deliver(part, results, stopped, signal)
  }

  #note(
    items: readonly Item[],
    answer: Answer | 'sent' | 'gave up',
    results: SendResult[],
    stopped: Set<string>,
  ): void {
    for (const item of items) {
      if (answer !== 'gave up') results[item.index] = answer === 'sent' ? SENT : resultOf(answer)
      if (answer !== 'sent') stopped.add(keyOf(item))
    }
  }

  async #answerTo(items: readonly Item[], signal: AbortSignal): Promise<Answer | 'sent' | 'gave up'> {
    const breaker = this.#breaker
    const { clock } = this.#parts
    for (;;) {
      const waitMs = breaker.waitMs(clock.monotonicMs())
      if (waitMs > 0) await clock.sleep(waitMs, signal)
      if (signal.aborted) {
        if (waitMs === 0) breaker.gaveUp(clock.monotonicMs())
        return 'gave up'
      }
      if (waitMs > 0) continue
      const verdict = await this.#try(items)
      if (verdict === 'sent' || verdict.kind !== 'unavailable') {
        breaker.answered()
        return verdict
      }
    }
  }

  async #try(items: readonly Item[]): Promise<SendVerdict | 'sent'> {
    const { clock, timeoutMs } = this.#parts
    try {
      const deadline = { clock, timeoutMs, what: 'Kafka' }
      await withDeadline(deadline, async (inTime) => {
        const producer = await this.#connected()
        // Too late, somebody else may be sending it by now.
        if (!inTime.aborted) await sendBy(producer, items)
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

  *#requests(items: readonly Item[]): Generator<readonly Item[]> {
    let request: Item[] = []
    let bytes = 0
    for (const item of items) {
      const size = sizeOf(item.outgoing)
      if (request.length > 0 && bytes + size > this.#parts.maxRequestBytes) {
        yield request
        request = []
        bytes = 0
      }
      request.push(item)
      bytes += size
    }
    if (request.length > 0) yield request
  }
}

function isAboutAll(answer: Answer, [first, ...rest]: readonly Item[]): boolean {
  if (answer.kind !== 'refused' || !answer.isAboutTopic) return false
  return rest.every((item) => topicOf(item) === (first && topicOf(first)))
}

function keyOf({ outgoing }: Item): string {
  return outgoing.orderingKey
}

function topicOf({ outgoing }: Item): string {
  return outgoing.record.topic
}

function resultOf({ kind, failure }: Answer): SendResult {
  return { kind, failure }
}

type Answer = Exclude<SendVerdict, { readonly kind: 'unavailable' }>

function idempotent(producer: KafkaProducer): KafkaProducer {
  if (producer.isIdempotent?.() !== false) return producer
  throw new InvalidOptionsError('the Kafka producer', [
    'it must be idempotent, or its own retries could write twice and out of order: ' +
      'kafka.producer({ idempotent: true, maxInFlightRequests: 1 })',
  ])
}

function sendBy(producer: KafkaProducer, items: readonly Item[]): Promise<unknown> {
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
  return producer.sendPrepared(topics)
}

/** Made anew for every try: clients change what they are given. */
function batchOf(items: readonly Item[]): { topicMessages: KafkaTopicMessages[] } {
  const topicMessages = [...byTopic(items)].map(([topic, each]) => ({
    topic,
    messages: each.map(({ outgoing: { record } }) => {
      const { key, value, headers } = record
      return { key, value, headers: { ...headers } }
    }),
  }))
  return { topicMessages }
}

function byTopic(items: readonly Item[]): ReadonlyMap<string, readonly Item[]> {
  const topics = new Map<string, Item[]>()
  for (const item of items) {
    const known = topics.get(topicOf(item))
    if (known === undefined) topics.set(topicOf(item), [item])
    else known.push(item)
  }
  return topics
}

/** By topic first, which is what most refusals are about, unless that changed the order of a key; then in halves. */
function parted(items: readonly Item[]): readonly (readonly Item[])[] {
  const topics = [...byTopic(items).values()]
  const keys = topics.map((each) => new Set(each.map(keyOf)))
  const areApart =
    keys.reduce((sum, { size }) => sum + size, 0) === new Set(keys.flatMap((each) => [...each])).size
  if (topics.length > 1 && areApart) return topics
  const middle = items.length >> 1
  return [items.slice(0, middle), items.slice(middle)]
}

function sizeOf({ record, prepared }: Outgoing): number {
  if (prepared !== undefined) return prepared.size + RECORD_OVERHEAD
  const { key, value, headers } = record
  let ofHeaders = 0
  for (const name of Object.keys(headers)) ofHeaders += name.length + (headers[name]?.length ?? 0)
  return Buffer.byteLength(value) + Buffer.byteLength(key ?? '') + ofHeaders + RECORD_OVERHEAD
}

function unavailable(error: unknown): CommitpostError {
  return new CommitpostError(
    'BROKER_UNAVAILABLE',
    `Kafka cannot be reached, or cannot take messages: ${describeError(error)}. What is to be sent waits in hand; no ` +
      'attempt is spent, and it is sent as soon as Kafka answers. See whether the brokers run and the addresses are right.',
    { cause: error },
  )
}
