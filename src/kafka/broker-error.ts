import type { DeliveryFailure } from '../delivery/delivery.ts'
import { deliveryFailure } from '../delivery/failure.ts'
import { property, textProperty } from '../runtime/property.ts'
import { describeError } from '../runtime/text.ts'

/** What the failure of a send means. */
export type SendVerdict =
  /** The brokers are down, or cannot work: it is nobody's fault, and heals by itself. */
  | { readonly kind: 'unavailable' }
  /** It is about one of the records, and sending that again cannot help. */
  | {
      readonly kind: 'refused'
      readonly failure: DeliveryFailure
      /** True where all records of its topic are refused alike. */
      readonly isAboutTopic: boolean
    }
  /** Nobody knows what it is about: another try may help, or not. */
  | { readonly kind: 'failed'; readonly failure: DeliveryFailure }

/** Kafka's own codes, which librdkafka shares. Negative ones are librdkafka's for what it finds out by itself. */
const UNKNOWN_TOPIC: ReadonlySet<number> = new Set([3, -188, -190])
const REFUSED: ReadonlyMap<number, string> = new Map([
  [3, 'UNKNOWN_TOPIC_OR_PARTITION'],
  [-188, 'UNKNOWN_TOPIC_OR_PARTITION'],
  [-190, 'UNKNOWN_TOPIC_OR_PARTITION'],
  [10, 'MESSAGE_TOO_LARGE'],
  [17, 'INVALID_TOPIC_EXCEPTION'],
  [18, 'RECORD_LIST_TOO_LARGE'],
  [32, 'INVALID_TIMESTAMP'],
  [44, 'POLICY_VIOLATION'],
  [87, 'INVALID_RECORD'],
])

/** Leaders that move, replicas that are missing, coordinators that load, credentials, and the state of our own producer. */
const UNAVAILABLE: ReadonlySet<number> = new Set([
  5, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20, 31, 33, 34, 41, 45, 46, 47, 56, 58, 59, 72, 74, 75, 83, 89, 90, -144,
  -148, -150, -151, -152, -166, -169, -172, -181, -183, -184, -185, -187, -192, -193, -195, -197,
])

/** Errors of KafkaJS, of our own producer and of the sender that carry no code. */
const UNAVAILABLE_NAMES: ReadonlySet<string> = new Set([
  'KafkaJSConnectionError',
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
  'KafkaJSTimeout',
  'KafkaJSLockTimeout',
  'KafkaJSBrokerNotFound',
  'KafkaJSMetadataNotLoaded',
  'KafkaJSTopicMetadataNotLoaded',
  'KafkaJSSASLAuthenticationError',
  'KafkaJSStaleTopicMetadataAssignment',
  'DeadlineExceededError',
  'WireConnectionError',
  'LeadersMovedError',
])

/** Errors of KafkaJS that only wrap another. */
const RETRIES_EXCEEDED = 'KafkaJSNumberOfRetriesExceeded'
const DEEPEST_CAUSE = 5

/** What a send that failed with this means, by the outermost of the error and its causes that is recognised. */
export function classifySendError(error: unknown): SendVerdict {
  let level = error
  for (let depth = 0; depth <= DEEPEST_CAUSE && level !== undefined && level !== null; depth += 1) {
    const verdict = verdictOf(level, error)
    if (verdict !== null) return verdict
    level = property(level, 'cause')
  }
  // KafkaJS itself took it for something that heals.
  if (textProperty(error, 'name') === RETRIES_EXCEEDED) return { kind: 'unavailable' }
  const code = textProperty(error, 'type') ?? textProperty(error, 'code') ?? 'BROKER_REFUSED'
  return { kind: 'failed', failure: deliveryFailure(code, describeError(error)) }
}

function verdictOf(level: unknown, whole: unknown): SendVerdict | null {
  const name = textProperty(level, 'name')
  if (name !== undefined && UNAVAILABLE_NAMES.has(name)) return { kind: 'unavailable' }
  const code = property(level, 'code')
  if (typeof code !== 'number') return null
  if (UNAVAILABLE.has(code)) return { kind: 'unavailable' }
  const refusal = REFUSED.get(code)
  if (refusal === undefined) return null
  const failure = deliveryFailure(refusal, describeError(whole))
  return { kind: 'refused', failure, isAboutTopic: UNKNOWN_TOPIC.has(code) }
}
