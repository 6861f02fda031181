import type { EventProblem } from '../event/errors.ts'
import { isRecord, meant, shown } from '../runtime/option-checks.ts'
import { describeError } from '../runtime/text.ts'
import type { EventDetails, PublishInput } from './event-bus.ts'

/** One event as given by the caller: copied, so that a getter answers once, and otherwise not yet looked at. */
export interface GivenDetails extends EventDetails {
  readonly payload: unknown
  /** Named by the event itself in a batch. */
  readonly type?: unknown
  /** Of a single event. */
  readonly onDuplicate?: unknown
}

/** What the caller gave, or why it is nothing that can be looked at. */
export interface ReadInput {
  readonly given: GivenDetails | null
  readonly problems: readonly EventProblem[]
}

const DETAILS = [
  'aggregateId',
  'payload',
  'eventId',
  'occurredAt',
  'orderingKey',
  'headers',
  'traceparent',
  'tracestate',
  'correlationId',
  'causationId',
] as const satisfies readonly (keyof PublishInput)[]

/** What may be said in the input of `publish`. */
export const PUBLISH_PROPERTIES: readonly (keyof PublishInput)[] = [...DETAILS, 'onDuplicate']

/** What may be said of each event of `publishAll`. */
export const BATCH_PROPERTIES: readonly string[] = ['type', ...DETAILS]

/** Copies what the caller gave. A misspelt property would otherwise be dropped without a word. */
export function readInput(input: unknown, known: readonly string[]): ReadInput {
  if (!isRecord(input)) {
    return notGiven(`must be an object with aggregateId and payload, but is ${shown(input)}`)
  }
  try {
    const given = { ...input } as unknown as GivenDetails
    const unknown = Object.keys(given).filter((name) => !known.includes(name))
    return { given, problems: unknown.map((name) => inputProblem(noSuchProperty(name, known))) }
  } catch (error) {
    // A getter or a proxy threw.
    return notGiven(`could not be read: ${describeError(error)}`)
  }
}

function notGiven(message: string): ReadInput {
  return { given: null, problems: [inputProblem(message)] }
}

function inputProblem(message: string): EventProblem {
  return { code: 'INVALID_EVENT', path: 'input', message }
}

function noSuchProperty(name: string, known: readonly string[]): string {
  return `has no property ${shown(name)}${meant(name, known)}`
}
