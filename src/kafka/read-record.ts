import type { Catalogue } from '../event/catalogue.ts'
import { type EnvelopeFields, fromEnvelope } from '../event/envelope.ts'
import { defaultOrderingKey, type EventHeaders, type OutboxEvent } from '../event/event.ts'
import { parseHeaders } from '../event/stored-headers.ts'
import { CommitpostError } from '../runtime/errors.ts'
import { normaliseUuid } from '../runtime/ids.ts'
import { isRecord } from '../runtime/option-checks.ts'
import { describeError } from '../runtime/text.ts'
import type { ReceivedHeader, ReceivedMessage } from './client.ts'
import {
  type CloudEventAttributes,
  headersOfAttributes,
  isStructured,
  readCloudEventHeaders,
} from './cloud-event.ts'
import { attributeName, MESSAGE_HEADERS } from './wire-headers.ts'

/** Where a message stood. */
export interface RecordPlace {
  readonly topic: string
  readonly partition: number
}

/** How messages are to be read. */
export interface ReadOptions {
  readonly catalogue: Catalogue
  /** How the fields of envelopes are spelt; null where values are payloads. CloudEvents are known by their headers. */
  readonly envelope: EnvelopeFields | null
}

/** What was found of an event, wherever in the message it stood. */
interface Found {
  readonly attributes: Readonly<Record<string, string | undefined>>
  readonly headers: EventHeaders
  readonly payload: unknown
}

/**
 * Makes an event of a message: one of ours, of Debezium's outbox router, or any CloudEvent. What it does not say is
 * taken from the message itself, or from what the catalogue knows of its type.
 * @throws CommitpostError RECORD_UNREADABLE
 */
export function readRecord(message: ReceivedMessage, place: RecordPlace, options: ReadOptions): OutboxEvent {
  const found = findIn(message, textsOf(message.headers ?? {}), options, place)
  const { attributes, payload, headers } = found
  const eventId = normaliseUuid(attributes['eventId'])
  const type = attributes['eventType']
  if (eventId === null) throw unreadable(message, place, 'it has no event id that is a UUID')
  if (type === undefined) throw unreadable(message, place, 'it has no event type')
  return {
    eventId,
    type,
    position: message.offset,
    schemaVersion: wholeNumber(attributes['schemaVersion']) ?? 1,
    sequence: wholeNumber(attributes['sequence']),
    payload,
    headers,
    ...whereOf(found, type, { message, place, options }),
    ...whenOf(found, message),
  }
}

interface Circumstances {
  readonly message: ReceivedMessage
  readonly place: RecordPlace
  readonly options: ReadOptions
}

function whereOf(
  { attributes }: Found,
  type: string,
  { message, place, options }: Circumstances,
): Pick<OutboxEvent, 'stream' | 'aggregateType' | 'aggregateId' | 'orderingKey'> {
  const spec = options.catalogue.findStored(type)
  const aggregateType = attributes['aggregateType'] ?? spec?.aggregate ?? ''
  const aggregateId = attributes['aggregateId'] ?? bytesToText(message.key) ?? ''
  const orderingKey = attributes['orderingKey'] ?? defaultOrderingKey(aggregateType, aggregateId)
  return {
    stream: attributes['stream'] ?? spec?.stream ?? place.topic,
    aggregateType,
    aggregateId,
    orderingKey,
  }
}

function whenOf(
  { attributes }: Found,
  { timestamp }: ReceivedMessage,
): Pick<OutboxEvent, 'occurredAt' | 'createdAt'> {
  const arrivedAt = dateOf(timestamp === undefined ? undefined : Number(timestamp))
  const occurredAt = dateOf(attributes['occurredAt']) ?? arrivedAt ?? new Date(0)
  return { occurredAt, createdAt: arrivedAt ?? occurredAt }
}

/** The headers of a message as texts. Of several with one name the last counts. */
export function textsOf(headers: Readonly<Record<string, ReceivedHeader>>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(headers).flatMap(([name, value]): [string, string][] => {
      const one = Array.isArray(value) ? (value as readonly (Uint8Array | string)[]).at(-1) : value
      const text = bytesToText(one as Uint8Array | string | null | undefined)
      return text === null ? [] : [[name, text]]
    }),
  )
}

function findIn(
  message: ReceivedMessage,
  headers: ReadonlyMap<string, string>,
  options: ReadOptions,
  place: RecordPlace,
): Found {
  const value = parsed(message, place)
  const binary = readCloudEventHeaders(headers)
  if (binary !== null) return ofCloudEvent(binary, value, headers)
  if (isStructured(headers.get('content-type'))) return ofStructured(message, value, headers, place)
  const attributes = {
    ...Object.fromEntries(headers),
    // Debezium's outbox router calls it so.
    eventId: headers.get('eventId') ?? headers.get('id'),
  }
  const own = ownHeaders(headers)
  if (options.envelope === null) return { attributes, payload: value, headers: own }
  return ofEnvelope(message, value, { attributes, payload: null, headers: own }, options.envelope, place)
}

/** The event's own headers: each one of the message, or, from Debezium's outbox router, all in one. */
function ownHeaders(headers: ReadonlyMap<string, string>): EventHeaders {
  const { headers: all, ...own } = attributesIn(headers, (name) => MESSAGE_HEADERS.has(name))
  if (all === undefined) return own
  return { ...own, ...((headers.has('id') ? textsIn(all) : null) ?? { headers: all }) }
}

function textsIn(json: string): EventHeaders | null {
  try {
    const found: unknown = parseHeaders(json)
    return isRecord(found) ? (found as EventHeaders) : null
  } catch {
    return null
  }
}

function attributesIn(
  headers: ReadonlyMap<string, string>,
  isMessageOwn: (name: string) => boolean,
): Readonly<Record<string, string>> {
  const attributes = [...headers].filter(([name]) => !isMessageOwn(name))
  return Object.fromEntries(attributes.map(([name, value]) => [attributeName(name), value]))
}

function ofCloudEvent(
  attributes: CloudEventAttributes,
  payload: unknown,
  headers: ReadonlyMap<string, string>,
): Found {
  const others = attributesIn(headers, (name) => name.startsWith('ce_') || name === 'content-type')
  return {
    attributes: {
      eventId: attributes['id'],
      eventType: attributes['type'],
      occurredAt: attributes['time'],
      aggregateId: attributes['subject'],
      stream: attributes['stream'],
      aggregateType: attributes['aggregatetype'],
      schemaVersion: attributes['schemaversion'],
      sequence: attributes['sequence'],
      orderingKey: attributes['orderingkey'],
    },
    payload,
    headers: { ...others, ...headersOfAttributes(attributes) },
  }
}

function ofStructured(
  message: ReceivedMessage,
  value: unknown,
  headers: ReadonlyMap<string, string>,
  place: RecordPlace,
): Found {
  if (!isRecord(value)) throw unreadable(message, place, 'a structured CloudEvent must be a JSON object')
  const { data, ...rest } = value
  const texts = Object.entries(rest).flatMap(([name, each]): [string, string][] =>
    typeof each === 'string' || typeof each === 'number' ? [[name, String(each)]] : [],
  )
  return ofCloudEvent(Object.fromEntries(texts), data, headers)
}

function ofEnvelope(
  message: ReceivedMessage,
  value: unknown,
  found: Found,
  fields: EnvelopeFields,
  place: RecordPlace,
): Found {
  try {
    const contents = fromEnvelope(value, fields)
    return {
      attributes: {
        eventType: contents.type,
        schemaVersion: String(contents.schemaVersion),
        occurredAt: contents.occurredAt.toISOString(),
        ...defined(found.attributes),
        eventId: contents.eventId,
      },
      headers: withoutKnownTrace({ ...contents.headers, ...found.headers }),
      payload: contents.payload,
    }
  } catch (error) {
    throw unreadable(message, place, describeError(error))
  }
}

/** The envelope's trace id is in the traceparent already, where there is one. */
function withoutKnownTrace({ traceId, ...headers }: EventHeaders): EventHeaders {
  return traceId === undefined || headers['traceparent'] !== undefined ? headers : { ...headers, traceId }
}

function defined(attributes: Found['attributes']): Found['attributes'] {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}

function parsed(message: ReceivedMessage, place: RecordPlace): unknown {
  try {
    return JSON.parse(bytesToText(message.value) ?? 'null')
  } catch {
    // What the parser says quotes the value, and this goes to log lines.
    throw unreadable(message, place, 'its value is no JSON')
  }
}

function unreadable({ offset }: ReceivedMessage, { topic, partition }: RecordPlace, why: string): Error {
  return new CommitpostError(
    'RECORD_UNREADABLE',
    `The message at offset ${offset} of ${topic}, partition ${partition}, is no event: ${why}.`,
  )
}

function bytesToText(bytes: Uint8Array | string | null | undefined): string | null {
  if (bytes === null || bytes === undefined) return null
  return typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')
}

function wholeNumber(text: string | undefined): number | null {
  const number = Number(text ?? Number.NaN)
  return Number.isSafeInteger(number) && number >= 1 ? number : null
}

function dateOf(at: string | number | undefined): Date | null {
  const date = new Date(at ?? Number.NaN)
  return Number.isNaN(date.getTime()) ? null : date
}
