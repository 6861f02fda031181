import { CommitpostError } from '../runtime/errors.ts'
import {
  isRecord,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
} from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import type { EventHeaders, OutboxEvent } from './event.ts'
import { RESERVED_HEADERS } from './headers.ts'
import { traceIdOf } from './trace-context.ts'

/** The envelope's own fields; everything else in it is an attribute of the domain. */
export type EnvelopeField =
  | 'schemaVersion'
  | 'eventId'
  | 'type'
  | 'occurredAt'
  | 'traceId'
  | 'stream'
  | 'aggregateType'
  | 'aggregateId'
  | 'sequence'
  | 'payload'

/** How the fields are spelt: `{ type: 'eventType', occurredAt: 'timestamp' }`. False leaves one out, true keeps its name. */
export type EnvelopeFields = Readonly<Partial<Record<EnvelopeField, string | boolean>>>

/** An event as one JSON object, for transports whose messages have no room beside the payload. */
export interface EventEnvelope {
  readonly [field: string]: unknown
}

/** What an envelope says. The rest of an event (stream, position, …) is known to whoever received it. */
export interface EnvelopeContents {
  readonly schemaVersion: number
  readonly eventId: string
  readonly type: string
  readonly occurredAt: Date
  readonly headers: EventHeaders
  readonly payload: unknown
}

/** Something that came as an envelope and is none. `problems` lists all that is wrong with it. */
export class InvalidEnvelopeError extends CommitpostError {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super('INVALID_ENVELOPE', `Not an event envelope:\n${problems.map((text) => `- ${text}`).join('\n')}`)
    this.problems = problems
  }
}

const DEFAULT_FIELDS: Readonly<Record<EnvelopeField, string | false>> = {
  schemaVersion: 'schemaVersion',
  eventId: 'eventId',
  type: 'type',
  occurredAt: 'occurredAt',
  traceId: 'traceId',
  stream: false,
  aggregateType: false,
  aggregateId: false,
  sequence: false,
  payload: 'payload',
}

/**
 * The common envelope: schemaVersion, eventId, type, occurredAt, traceId, the domain's attributes, payload. In the
 * table payload and headers stand apart; this is made on the way out only. `traceId` is null where there is no trace.
 */
export function toEnvelope(event: OutboxEvent, fields: EnvelopeFields = {}): EventEnvelope {
  const isEvent = property(event, 'occurredAt') instanceof Date && isRecord(property(event, 'headers'))
  refuseProblems('toEnvelope', [
    isEvent ? null : `the event must be one as handlers get it, but is ${shown(event)}`,
    ...fieldProblems(fields),
  ])
  const spelling = spellingOf(fields)
  const values: Readonly<Record<EnvelopeField, unknown>> = {
    schemaVersion: event.schemaVersion,
    eventId: event.eventId,
    type: event.type,
    occurredAt: event.occurredAt.toISOString(),
    traceId: traceIdOf(event.headers),
    stream: event.stream,
    aggregateType: event.aggregateType,
    aggregateId: event.aggregateId,
    sequence: event.sequence,
    payload: event.payload,
  }
  const own = Object.entries(spelling).filter(([field]) => field !== 'payload')
  // An attribute that bears the name of a field stays out: it must not pass for the field.
  return Object.fromEntries([
    ...own.map(([field, name]) => [name, values[field as EnvelopeField]]),
    ...Object.entries(event.headers).filter(([name]) => isAttribute(name, spelling)),
    ...(spelling.payload === undefined ? [] : [[spelling.payload, values.payload]]),
  ])
}

/** Reads what `toEnvelope` wrote (with the same spelling) from parsed JSON. Attributes come back as headers. */
export function fromEnvelope(envelope: unknown, fields: EnvelopeFields = {}): EnvelopeContents {
  if (typeof envelope !== 'object' || envelope === null || Array.isArray(envelope)) {
    throw new InvalidEnvelopeError(['it must be a JSON object'])
  }
  refuseProblems('fromEnvelope', fieldProblems(fields))
  const spelling = spellingOf(fields)
  const given = new Map<string, unknown>(Object.entries(envelope))
  const valueOf = (field: EnvelopeField): unknown => given.get(spelling[field] ?? field)
  const problems: string[] = []
  const contents = {
    schemaVersion: versionFrom(valueOf('schemaVersion'), problems),
    eventId: textFrom('eventId', valueOf('eventId'), problems),
    type: textFrom('type', valueOf('type'), problems),
    occurredAt: dateFrom(valueOf('occurredAt'), problems),
    headers: headersFrom(given, spelling, problems),
    payload: valueOf('payload'),
  }
  if (contents.payload === undefined) problems.push('payload is missing')
  if (problems.length > 0) throw new InvalidEnvelopeError(problems)
  return contents
}

type Spelling = Readonly<Partial<Record<EnvelopeField, string>>>

function spellingOf(fields: EnvelopeFields): Spelling {
  const chosen = Object.entries({ ...DEFAULT_FIELDS, ...fields }).map(([field, name]) => [
    field,
    name === true ? field : name,
  ])
  return Object.fromEntries(chosen.filter(([, name]) => typeof name === 'string'))
}

/** Two fields of one name, or a misspelt one, would lose what they carry without a word. */
function fieldProblems(fields: EnvelopeFields): readonly (string | null)[] {
  const problem = recordProblem('the fields', fields)
  if (problem !== null) return [problem]
  const names = Object.values(spellingOf(fields))
  const repeated = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  return [
    ...unknownOptionProblems(fields, Object.keys(DEFAULT_FIELDS)),
    ...Object.entries(fields).map(([field, name]) =>
      typeof name === 'boolean' ? null : textProblem(`the name of ${field}`, name ?? null),
    ),
    ...[...repeated].map((name) => `two fields would be called ${shown(name)}`),
  ]
}

function isAttribute(name: string, spelling: Spelling): boolean {
  return !RESERVED_HEADERS.has(name) && !Object.values(spelling).includes(name)
}

// Left out of the envelope by choice, a version is the first.
function versionFrom(value: unknown, problems: string[]): number {
  if (value === undefined) return 1
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1) return value
  problems.push('schemaVersion must be a whole number from 1 on')
  return 1
}

function textFrom(field: EnvelopeField, value: unknown, problems: string[]): string {
  if (typeof value === 'string' && value !== '') return value
  problems.push(`${field} must be a text`)
  return ''
}

function dateFrom(value: unknown, problems: string[]): Date {
  const date = new Date(typeof value === 'string' || typeof value === 'number' ? value : Number.NaN)
  if (Number.isNaN(date.getTime())) problems.push('occurredAt must be a time (ISO 8601)')
  return date
}

function headersFrom(
  given: ReadonlyMap<string, unknown>,
  spelling: Spelling,
  problems: string[],
): EventHeaders {
  const headers: [string, string][] = []
  const traceId = given.get(spelling.traceId ?? 'traceId')
  if (typeof traceId === 'string') headers.push(['traceId', traceId])
  for (const [name, value] of given) {
    if (!isAttribute(name, spelling) || value === null) continue
    if (typeof value === 'string') headers.push([name, value])
    else if (typeof value === 'number' || typeof value === 'boolean') headers.push([name, String(value)])
    else problems.push(`attribute ${name} must be a text, a number or true or false`)
  }
  return Object.fromEntries(headers)
}
