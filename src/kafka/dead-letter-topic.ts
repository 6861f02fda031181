import type { DeliveryFailure } from '../delivery/delivery.ts'
import type { OutboxEvent } from '../event/event.ts'
import { Mutex } from '../queue/mutex.ts'
import { type Clock, systemClock } from '../runtime/clock.ts'
import { CommitpostError } from '../runtime/errors.ts'
import {
  functionProblem,
  isRecord,
  recordProblem,
  refuseProblems,
  shown,
  unknownOptionProblems,
} from '../runtime/option-checks.ts'
import { type Random, systemRandom } from '../runtime/random.ts'
import type { KafkaMessage, KafkaProducer, ReceivedHeader, ReceivedMessage, SentHeader } from './client.ts'
import type { RecordPlace } from './read-record.ts'
import { Sender } from './sender.ts'
import { isTopicName } from './topic.ts'

/** A message that a consumer could not handle, and why. */
export interface DeadRecord extends RecordPlace {
  readonly subscription: string
  readonly message: ReceivedMessage
  /** Null where the message is no event. */
  readonly event: OutboxEvent | null
  readonly failure: DeliveryFailure
  /** How often it was tried. */
  readonly attempts: number
  readonly failedAt: Date
}

/** Where a consumer sets aside what it cannot handle. Its offset is committed only once this has resolved. */
export interface DeadRecordSink {
  /** Keeps the message for a person. Rejects if it could not: it is offered again then. */
  setAside(dead: DeadRecord): Promise<void>
  /** Lets its connections go. */
  close?(): Promise<void>
}

/** What a dead-letter topic is made of. */
export interface DeadLetterTopicOptions {
  /** Makes an idempotent producer, as for `kafka()`. */
  readonly producer: () => KafkaProducer
  /**
   * The name of the topic, in which `{topic}` stands for the one the message came from.
   * @default '{topic}.dead'
   */
  readonly topic?: string
  /** Time, for tests. */
  readonly clock?: Clock
  /** Chance, for tests. */
  readonly random?: Random
}

const OPTION_NAMES: readonly (keyof DeadLetterTopicOptions)[] = ['producer', 'topic', 'clock', 'random']
const TIMEOUT_MS = 30_000

/**
 * Sets messages aside in a topic of their own: key, value and headers byte for byte, and headers that say why
 * (`dead_letter_code`, `dead_letter_message`, `dead_letter_attempts`, …), from where and when.
 */
export function deadLetterTopic(options: DeadLetterTopicOptions): DeadRecordSink {
  refuseProblems('deadLetterTopic', problemsOf(options))
  const { topic = '{topic}.dead', clock = systemClock, random = systemRandom, producer } = options
  const limits = { timeoutMs: TIMEOUT_MS, maxRequestBytes: 1 }
  const sender = new Sender({ producer, clock, random, ...limits, onOutage: () => {} })
  sender.open()
  const taking = new Mutex()
  return {
    setAside: async (dead) => {
      const record = { topic: topic.replaceAll('{topic}', dead.topic), ...messageOf(dead) }
      const giveUp = new AbortController()
      const sent = new AbortController()
      void clock.sleep(TIMEOUT_MS, sent.signal).then(() => giveUp.abort())
      // One after the other, whichever partition it is of: a producer that does not know what became of one message gives
      // its number to the next, which is then taken for a repetition and dropped.
      const [result] = await taking.run(() => sender.send([{ record, orderingKey: '' }], giveUp.signal))
      sent.abort()
      if (result?.kind !== 'sent') throw notSetAside(record.topic, result)
    },
    close: () => sender.close(),
  }
}

function problemsOf(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  const { topic = '{topic}.dead' } = options
  const isName = typeof topic === 'string' && isTopicName(topic.replaceAll('{topic}', 'x'))
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    functionProblem('producer', options['producer'] ?? null),
    isName
      ? null
      : `topic must be a name that Kafka can have, with {topic} in it or not, but is ${shown(topic)}`,
  ]
}

function messageOf({ message, failure, ...dead }: DeadRecord): KafkaMessage {
  const headers = Object.entries(message.headers ?? {}).map(([name, header]) => [name, headerOf(header)])
  return {
    key: message.key === null || message.key === undefined ? null : bytesOf(message.key),
    value: bytesOf(message.value),
    headers: {
      ...Object.fromEntries(headers),
      dead_letter_code: failure.code,
      dead_letter_message: failure.message,
      dead_letter_attempts: String(dead.attempts),
      dead_letter_subscription: dead.subscription,
      dead_letter_topic: dead.topic,
      dead_letter_partition: String(dead.partition),
      dead_letter_offset: message.offset,
      dead_letter_at: dead.failedAt.toISOString(),
    },
  }
}

/** What is no event may be no text either: it is kept as it came. */
function bytesOf(bytes: Uint8Array | string | null | undefined): string | Buffer {
  return typeof bytes === 'string' ? bytes : Buffer.from(bytes ?? [])
}

function headerOf(header: ReceivedHeader): SentHeader {
  if (!Array.isArray(header)) return bytesOf(header as Uint8Array | string | null | undefined)
  return (header as readonly (Uint8Array | string)[]).map(bytesOf)
}

function notSetAside(topic: string, result: unknown): CommitpostError {
  const why =
    isRecord(result) && isRecord(result['failure']) ? `: ${String(result['failure']['message'])}` : ''
  return new CommitpostError(
    'BROKER_REFUSED',
    `A message could not be set aside in topic ${topic}${why}. Its partition waits until it can: see whether the topic ` +
      'exists and takes messages of that size.',
  )
}
