import type { Middleware } from '../dispatch/handler.ts'
import { dispatcherProblems } from '../dispatch/options.ts'
import type { Catalogue } from '../event/catalogue.ts'
import type { EnvelopeFields } from '../event/envelope.ts'
import { LOGGER_METHODS, type Logger } from '../observe/logger.ts'
import type { Tracing } from '../observe/tracing.ts'
import type { Observer } from '../observe/worker-events.ts'
import type { EventBus } from '../publish/event-bus.ts'
import type { Clock } from '../runtime/clock.ts'
import {
  booleanProblem,
  functionProblem,
  isRecord,
  methodsProblem,
  oneOfProblem,
  recordProblem,
  shown,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import type { Random } from '../runtime/random.ts'
import type { Backoff } from '../settle/backoff.ts'
import type { ErrorClassifier } from '../settle/classify.ts'
import { retryProblems } from '../settle/retry-policy.ts'
import type { InboxStore } from '../store/inbox-store.ts'
import type { PublishStore } from '../store/publish-store.ts'
import type { SubscriptionHandlers } from '../worker/subscription-options.ts'
import { subscriptionNameProblem } from '../worker/subscription-problems.ts'
import type { KafkaConsumerClient } from './client.ts'
import type { DeadRecordSink } from './dead-letter-topic.ts'
import type { SequenceChecker } from './sequence-checker.ts'

/** What a consumer is made of. The handlers are those of a subscription, unchanged. */
export interface KafkaConsumerOptions<C extends Catalogue, Tx> {
  /** The subscription's name: what its inbox, its log lines and its dead letters go by. */
  readonly name: string
  /** Makes the client: `() => kafka.consumer({ groupId: 'billing' })`. Called at each start. */
  readonly consumer: () => KafkaConsumerClient
  /** The topics to read. */
  readonly topics: readonly (string | RegExp)[]
  /** The catalogue: `defineEvents({ … })`. */
  readonly events: C
  /** What to do with each event: handlers by event name, `'*'` for all others. */
  readonly on: SubscriptionHandlers<C, Tx>
  /** Where what cannot be handled is set aside: `deadLetterTopic({ producer })`, or a sink of your own. */
  readonly deadLetters: DeadRecordSink
  /** Keeps the inbox, for `ctx.once`: `postgresStore({ pool })`. */
  readonly store?: InboxStore<Tx> & Pick<PublishStore<Tx>, 'assertInTransaction'>
  /** What `ctx.publish` publishes with: an outbox. */
  readonly bus?: EventBus<C, Tx>
  /**
   * By what `ctx.once` knows an event again: its id, or its ordering key and sequence, for events that may have been
   * published twice under different ids.
   * @default 'eventId'
   */
  readonly onceBy?: 'eventId' | 'sequence'
  /** How the fields of envelopes are spelt, as the sender was told. @default values are payloads, or CloudEvents */
  readonly envelope?: EnvelopeFields
  /**
   * What becomes of an event that has no handler: a topic may hold more than this consumer is for.
   * @default 'skip'
   */
  readonly unhandled?: 'skip' | 'dead'
  /** Verifies the sequence of what arrives: `sequenceChecker({ onFinding })`. */
  readonly sequence?: SequenceChecker
  /**
   * True begins with the oldest message where the group has read none. For kafkajs: `@confluentinc/kafka-javascript` takes it
   * in its own configuration, `kafka.consumer({ kafkaJS: { groupId, fromBeginning: true } })`, and begins with the newest
   * where it is not there.
   * @default true
   */
  readonly fromBeginning?: boolean
  /** How many partitions are worked on at once. @default 4 */
  readonly partitionsAtOnce?: number
  /** The pause after each failed attempt; the partition waits meanwhile. @default exponential, from 1 s to 5 min */
  readonly retry?: Backoff
  /** How many attempts an event gets, the first included. @default 5 */
  readonly maxAttempts?: number
  /** A view of your own on errors. */
  readonly classify?: ErrorClassifier
  /** How long a handler may take, in milliseconds; null for ever. @default 60_000 */
  readonly timeoutMs?: number | null
  /** Around every handler, the first outermost. */
  readonly middleware?: readonly Middleware[]
  /** Gets a line for everything that happens. @default silent */
  readonly logger?: Logger
  /** Told of everything that happens, like a worker's. */
  readonly observer?: Observer
  /** Carries traces on to handlers: `openTelemetry()`. */
  readonly tracing?: Tracing
  /** Time, for tests. */
  readonly clock?: Clock
  /** Chance, for tests. */
  readonly random?: Random
}

const OPTION_NAMES: readonly (keyof KafkaConsumerOptions<Catalogue, unknown>)[] = [
  'name',
  'consumer',
  'topics',
  'events',
  'on',
  'deadLetters',
  'store',
  'bus',
  'onceBy',
  'envelope',
  'unhandled',
  'sequence',
  'fromBeginning',
  'partitionsAtOnce',
  'retry',
  'maxAttempts',
  'classify',
  'timeoutMs',
  'middleware',
  'logger',
  'observer',
  'tracing',
  'clock',
  'random',
]

/** What is wrong with the options of a consumer, all of it. */
export function consumerProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  const { retry: backoff, maxAttempts } = options
  return [
    ...unknownOptionProblems(options, OPTION_NAMES, { groupId: 'give it to kafka.consumer({ groupId })' }),
    subscriptionNameProblem(options['name']),
    functionProblem('consumer', options['consumer'] ?? null),
    topicListProblem(options['topics']),
    methodsProblem('events', options['events'] ?? null, ['read', 'findStored']),
    ...dispatcherProblems({ ...options, handlers: options['on'] }),
    methodsProblem('deadLetters', options['deadLetters'] ?? null, ['setAside']),
    methodsProblem('store', options['store'], ['recordOnce', 'assertInTransaction']),
    methodsProblem('bus', options['bus'], ['publish']),
    oneOfProblem('onceBy', options['onceBy'], ['eventId', 'sequence']),
    options['envelope'] === undefined ? null : recordProblem('envelope', options['envelope']),
    oneOfProblem('unhandled', options['unhandled'], ['skip', 'dead']),
    methodsProblem('sequence', options['sequence'], ['check']),
    booleanProblem('fromBeginning', options['fromBeginning']),
    wholeNumberProblem('partitionsAtOnce', options['partitionsAtOnce'], 1, 1_000),
    ...retryProblems({ backoff, maxAttempts }),
    functionProblem('classify', options['classify']),
    methodsProblem('logger', options['logger'], LOGGER_METHODS),
    functionProblem('observer', options['observer']),
    methodsProblem('clock', options['clock'], ['now', 'monotonicMs', 'sleep']),
    functionProblem('random', options['random']),
  ]
}

function topicListProblem(topics: unknown): string | null {
  const isList = Array.isArray(topics) && topics.length > 0
  const isFine = isList && topics.every((topic) => typeof topic === 'string' || topic instanceof RegExp)
  return isFine ? null : `topics must be a list of at least one name or RegExp, but is ${shown(topics)}`
}
