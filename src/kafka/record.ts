import { type EnvelopeFields, toEnvelope } from '../event/envelope.ts'
import type { OutboxEvent } from '../event/event.ts'
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
  hasDefaultKey,
  isExtension,
  STRUCTURED_CONTENT_TYPE,
} from './cloud-event.ts'
import { onTheWire } from './wire-headers.ts'

/**
 * What a message's value is: the payload alone; the whole envelope, with its fields spelt as you like; or a CloudEvent,
 * whose `source` is a URI of your own (`'/shop/orders'`).
 */
export type RecordFormat =
  | 'payload'
  | 'envelope'
  | { readonly envelope: EnvelopeFields }
  | { readonly cloudEvents: 'binary' | 'structured'; readonly source: string }

/** An event as a message: all of it is text. */
interface EventMessage extends KafkaMessage {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** A message and the topic it goes to. */
export interface KafkaRecord extends KafkaMessage {
  readonly topic: string
}

/** The key that a message has unless its option says otherwise: the aggregate's id, or the key that order follows. */
export function keyOf(event: OutboxEvent): string {
  return hasDefaultKey(event) ? event.aggregateId : event.orderingKey
}

/** Writes an event as a message. */
export function toMessage(event: OutboxEvent, key: string, format: RecordFormat): EventMessage {
  if (typeof format === 'object' && 'cloudEvents' in format) return toCloudEvent(event, key, format)
  if (format === 'payload') return { key, value: JSON.stringify(event.payload), headers: headersOf(event) }
  const fields = format === 'envelope' ? {} : format.envelope
  return { key, value: JSON.stringify(toEnvelope(event, fields)), headers: headersOf(event) }
}

function headersOf(event: OutboxEvent): Readonly<Record<string, string>> {
  // One by one: an object that is put together from several costs many times as much, and every event has one.
  const headers: Record<string, string> = onTheWire(event.headers)
  headers['eventId'] = event.eventId
  headers['eventType'] = event.type
  headers['schemaVersion'] = String(event.schemaVersion)
  if (event.sequence !== null) headers['sequence'] = String(event.sequence)
  headers['stream'] = event.stream
  headers['aggregateType'] = event.aggregateType
  headers['aggregateId'] = event.aggregateId
  if (!hasDefaultKey(event)) headers['orderingKey'] = event.orderingKey
  headers['occurredAt'] = event.occurredAt.toISOString()
  return headers
}

function toCloudEvent(
  event: OutboxEvent,
  key: string,
  { cloudEvents, source }: Extract<RecordFormat, { readonly cloudEvents: unknown }>,
): EventMessage {
  const attributes = cloudEventAttributes(event, source, key)
  // Names of CloudEvents' attributes are lower case without marks; what the domain calls otherwise stays a header.
  const others = Object.entries(event.headers).filter(
    ([name]) => name === 'traceparent' || !isExtension(name),
  )
  const headers = onTheWire(Object.fromEntries(others))
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
