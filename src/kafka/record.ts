import { type EnvelopeFields, toEnvelope } from '../event/envelope.ts'
import { defaultOrderingKey, type OutboxEvent } from '../event/event.ts'
import {
  isRecord,
  oneOfProblem,
  recordProblem,
  shown,
  textProblem,
  unknownOptionProblems,
} from '../runtime/option-checks.ts'
import type { KafkaMessage } from './client.ts'
import {
  cloudEventAttributes,
  cloudEventHeaders,
  isExtension,
  STRUCTURED_CONTENT_TYPE,
} from './cloud-event.ts'

/**
 * What a message's value is: the payload alone; the whole envelope, with its fields spelt as you like; or a CloudEvent,
 * whose `source` is a URI of your own (`'/shop/orders'`).
 */
export type RecordFormat =
  | 'payload'
  | 'envelope'
  | { readonly envelope: EnvelopeFields }
  | { readonly cloudEvents: 'binary' | 'structured'; readonly source: string }

/** A message and the topic it goes to. */
export interface KafkaRecord extends KafkaMessage {
  readonly topic: string
}

/** Headers by which a consumer knows the event again, whatever the value is. */
export const EVENT_HEADERS = [
  'eventId',
  'eventType',
  'schemaVersion',
  'sequence',
  'stream',
  'aggregateType',
  'aggregateId',
  'orderingKey',
  'occurredAt',
] as const

/** The key that a message has unless its option says otherwise: the aggregate's id, or the key that order follows. */
export function keyOf({ orderingKey, aggregateType, aggregateId }: OutboxEvent): string {
  return orderingKey === defaultOrderingKey(aggregateType, aggregateId) ? aggregateId : orderingKey
}

/** Writes an event as a message. */
export function toMessage(event: OutboxEvent, key: string, format: RecordFormat): KafkaMessage {
  if (typeof format === 'object' && 'cloudEvents' in format) return toCloudEvent(event, key, format)
  if (format === 'payload') return { key, value: JSON.stringify(event.payload), headers: headersOf(event) }
  const fields = format === 'envelope' ? {} : format.envelope
  return { key, value: JSON.stringify(toEnvelope(event, fields)), headers: headersOf(event) }
}

function headersOf(event: OutboxEvent): Readonly<Record<string, string>> {
  const isDefaultKey = event.orderingKey === defaultOrderingKey(event.aggregateType, event.aggregateId)
  // The event's own last: an attribute of the domain must not pass for one of them.
  return {
    ...event.headers,
    eventId: event.eventId,
    eventType: event.type,
    schemaVersion: String(event.schemaVersion),
    ...(event.sequence === null ? {} : { sequence: String(event.sequence) }),
    stream: event.stream,
    aggregateType: event.aggregateType,
    aggregateId: event.aggregateId,
    ...(isDefaultKey ? {} : { orderingKey: event.orderingKey }),
    occurredAt: event.occurredAt.toISOString(),
  }
}

function toCloudEvent(
  event: OutboxEvent,
  key: string,
  { cloudEvents, source }: Extract<RecordFormat, { readonly cloudEvents: unknown }>,
): KafkaMessage {
  const attributes = cloudEventAttributes(event, source, key)
  // Names of CloudEvents' attributes are lower case without marks; what the domain calls otherwise stays a header.
  const others = Object.entries(event.headers).filter(
    ([name]) => name === 'traceparent' || !isExtension(name),
  )
  const headers = Object.fromEntries(others)
  if (cloudEvents === 'binary') {
    const value = JSON.stringify(event.payload)
    return { key, value, headers: { ...headers, ...cloudEventHeaders(attributes) } }
  }
  const value = JSON.stringify({ ...attributes, datacontenttype: 'application/json', data: event.payload })
  return { key, value, headers: { ...headers, 'content-type': STRUCTURED_CONTENT_TYPE } }
}

/** What is wrong with an optional format, each as a sentence. */
export function formatProblems(format: unknown): readonly (string | null)[] {
  if (format === undefined || format === 'payload' || format === 'envelope') return []
  if (!isRecord(format)) {
    return [
      `format must be 'payload', 'envelope', { envelope } or { cloudEvents, source }, but is ${shown(format)}`,
    ]
  }
  if (!('cloudEvents' in format)) {
    return [
      ...unknownOptionProblems(format, ['envelope', 'cloudEvents', 'source']),
      recordProblem('envelope of the format', format['envelope']),
    ]
  }
  return [
    ...unknownOptionProblems(format, ['cloudEvents', 'source']),
    oneOfProblem('cloudEvents', format['cloudEvents'] ?? null, ['binary', 'structured']),
    textProblem('source of the CloudEvents', format['source'] ?? null),
  ]
}
