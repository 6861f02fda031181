import { defaultOrderingKey, type OutboxEvent } from '../event/event.ts'

/** An event's attributes as CloudEvents 1.0 names them. All are texts. */
export type CloudEventAttributes = Readonly<Record<string, string>>

/** The headers of an event that are attributes in CloudEvents, under the names of its extensions. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  traceparent: 'traceparent',
  tracestate: 'tracestate',
  correlationId: 'correlationid',
  causationId: 'causationid',
}
/** Of the extension: it sorts as text, so numbers are filled up with zeros. */
const SEQUENCE_DIGITS = 16
const PREFIX = 'ce_'

/** What CloudEvents calls the event's own details; `source` is the URI of whoever published it. */
export function cloudEventAttributes(event: OutboxEvent, source: string, key: string): CloudEventAttributes {
  return {
    specversion: '1.0',
    id: event.eventId,
    type: event.type,
    source,
    subject: event.aggregateId,
    time: event.occurredAt.toISOString(),
    partitionkey: key,
    stream: event.stream,
    aggregatetype: event.aggregateType,
    schemaversion: String(event.schemaVersion),
    // The key of the message may be another: it is an option of whoever sends.
    ...(hasDefaultKey(event) ? {} : { orderingkey: event.orderingKey }),
    ...(event.sequence === null ? {} : { sequence: String(event.sequence).padStart(SEQUENCE_DIGITS, '0') }),
    ...Object.fromEntries(
      Object.entries(EXTENSIONS).flatMap(([header, name]) => {
        const value = event.headers[header]
        return value === undefined ? [] : [[name, value]]
      }),
    ),
  }
}

/** Whether order follows the aggregate, as it does unless the event says otherwise. */
export function hasDefaultKey({ orderingKey, aggregateType, aggregateId }: OutboxEvent): boolean {
  return orderingKey === defaultOrderingKey(aggregateType, aggregateId)
}

/** Binary mode: the attributes as headers. */
export function cloudEventHeaders(attributes: CloudEventAttributes): Readonly<Record<string, string>> {
  const named = Object.entries(attributes).map(([name, value]) => [`${PREFIX}${name}`, value])
  return { 'content-type': 'application/json', ...Object.fromEntries(named) }
}

/** The attributes in the headers of a message in binary mode; null where it is none. */
export function readCloudEventHeaders(headers: ReadonlyMap<string, string>): CloudEventAttributes | null {
  if (!headers.has(`${PREFIX}specversion`)) return null
  return Object.fromEntries(
    [...headers]
      .filter(([name]) => name.startsWith(PREFIX))
      .map(([name, value]) => [name.slice(PREFIX.length), value]),
  )
}

/** True for the content type of structured mode. */
export function isStructured(contentType: string | undefined): boolean {
  return contentType?.toLowerCase().startsWith('application/cloudevents+json') === true
}

/** The content type of structured mode. */
export const STRUCTURED_CONTENT_TYPE = 'application/cloudevents+json; charset=UTF-8'

/** The headers of an event that the attributes of a CloudEvent stand for. */
export function headersOfAttributes(attributes: CloudEventAttributes): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(EXTENSIONS).flatMap(([header, name]) => {
      const value = attributes[name]
      return value === undefined ? [] : [[header, value]]
    }),
  )
}

/** True for a header of an event that its CloudEvent has as an attribute already. */
export function isExtension(header: string): boolean {
  return Object.hasOwn(EXTENSIONS, header)
}
