import type { OutboxEvent } from '../event/event.ts'
import {
  functionProblem,
  shown,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import type { KafkaProducer } from './client.ts'
import { formatProblems, type KafkaRecord, keyOf, type RecordFormat, toMessage } from './record.ts'
import { TOPIC_OF_STREAM, type TopicRoute, topicOf, topicProblems } from './topic.ts'

/** How events become messages, and who sends them. */
export interface KafkaProducerOptions {
  /**
   * Makes a producer; called again after every failure, because one that lost count of its requests must not be used on.
   * It must be idempotent: `() => kafka.producer({ idempotent: true, maxInFlightRequests: 1 })`.
   */
  readonly producer: () => KafkaProducer
  /**
   * To which topic an event goes: a name with `{stream}`, `{aggregateType}` or `{type}` in it, names by event type as it is
   * stored, or a function.
   * @default '{stream}'
   */
  readonly topic?: TopicRoute
  /**
   * The message's key, by which Kafka keeps order.
   * @default the aggregate's id, or the ordering key where the event has one of its own
   */
  readonly key?: (event: OutboxEvent) => string
  /**
   * What the value is: `'payload'`, `'envelope'`, `{ envelope: { type: 'eventType', … } }`, or
   * `{ cloudEvents: 'binary' | 'structured', source }`.
   * @default 'payload'
   */
  readonly format?: RecordFormat
  /**
   * How long one try may take, in milliseconds. Then nobody knows whether it was written, and it is sent again.
   * @default 30_000
   */
  readonly timeoutMs?: number
  /**
   * How many bytes go in one request at most. Kafka takes 1 MiB for each partition, unless it is told otherwise.
   * @default 900_000
   */
  readonly maxRequestBytes?: number
}

/** The same with every default filled in. */
export interface ResolvedProducerOptions {
  readonly producer: () => KafkaProducer
  readonly timeoutMs: number
  readonly maxRequestBytes: number
  /** The event as a message. @throws whatever a function of the user's does. */
  readonly recordOf: (event: OutboxEvent) => KafkaRecord | null
}

const OPTION_NAMES: readonly (keyof KafkaProducerOptions)[] = [
  'producer',
  'topic',
  'key',
  'format',
  'timeoutMs',
  'maxRequestBytes',
]
const LONGEST_TIMEOUT_MS = 600_000
const LARGEST_REQUEST_BYTES = 100_000_000

/** What is wrong with the options of whoever sends, each as a sentence; `others` are options of its own. */
export function producerProblems(
  options: Readonly<Record<string, unknown>>,
  others: readonly string[] = [],
): readonly (string | null)[] {
  const { producer } = options
  return [
    ...unknownOptionProblems(options, [...OPTION_NAMES, ...others]),
    typeof producer === 'function'
      ? null
      : `producer must be a function that makes one, () => kafka.producer({ idempotent: true }), but is ${shown(producer)}`,
    ...topicProblems(options['topic']),
    functionProblem('key', options['key']),
    ...formatProblems(options['format']),
    wholeNumberProblem('timeoutMs', options['timeoutMs'], 1, LONGEST_TIMEOUT_MS),
    wholeNumberProblem('maxRequestBytes', options['maxRequestBytes'], 1, LARGEST_REQUEST_BYTES),
  ]
}

/** Fills in the defaults. The caller has seen to it that there are no problems. */
export function resolveProducerOptions(options: KafkaProducerOptions): ResolvedProducerOptions {
  const { format = 'payload', key = keyOf } = options
  const topicFor = topicOf(options.topic ?? TOPIC_OF_STREAM)
  return {
    producer: options.producer,
    timeoutMs: options.timeoutMs ?? 30_000,
    maxRequestBytes: options.maxRequestBytes ?? 900_000,
    recordOf: (event) => {
      const topic = topicFor(event)
      if (topic === null) return null
      const message = toMessage(event, key(event), format)
      // One by one: every event has one, and to spread an object costs several times as much.
      return { topic, key: message.key, value: message.value, headers: message.headers }
    },
  }
}
