import { unstorableText } from '../runtime/unstorable-text.ts'
import type { EventProblem } from './errors.ts'
import { jsonPath } from './json-path.ts'

/** Headers with a meaning of their own. Every other header is an attribute of the domain. */
export const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'traceparent',
  'tracestate',
  'traceId',
  'correlationId',
  'causationId',
])

/** Names an attribute cannot take, because in the envelope they stand for something else. */
export const ENVELOPE_OWN_FIELDS: ReadonlySet<string> = new Set([
  'schemaVersion',
  'eventId',
  'type',
  'occurredAt',
  'payload',
])

const HEADER_NAME = /^[A-Za-z0-9._-]{1,128}$/
const LINE_BREAK = /[\r\n]/
const MOST_HEADERS = 64
const MOST_HEADER_BYTES = 8_192

/** Everything wrong with these headers; empty when they can be stored and sent through any broker. */
export function headerProblems(headers: Readonly<Record<string, unknown>>): readonly EventProblem[] {
  const entries = Object.entries(headers)
  const problems = entries.flatMap(([name, value]) => {
    const message = nameProblem(name) ?? valueProblem(value)
    return message === null ? [] : [problemAt(jsonPath([name], 'headers'), message)]
  })
  if (entries.length > MOST_HEADERS) {
    problems.push(problemAt('headers', `are ${entries.length}; at most ${MOST_HEADERS} are allowed`))
  }
  const bytes = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value), 0)
  if (bytes > MOST_HEADER_BYTES) {
    problems.push(
      problemAt('headers', `are ${bytes} bytes together; at most ${MOST_HEADER_BYTES} are allowed`),
    )
  }
  return problems
}

function nameProblem(name: string): string | null {
  if (!HEADER_NAME.test(name))
    return 'has a name other than 1 to 128 letters, digits, dots, dashes or underscores'
  if (name === '__proto__') return 'has a name that JavaScript does not treat as a plain key'
  if (ENVELOPE_OWN_FIELDS.has(name))
    return `has a name that the envelope uses itself; choose another than "${name}"`
  return null
}

function valueProblem(value: unknown): string | null {
  if (typeof value !== 'string') return `must be a string, but is ${value === null ? 'null' : typeof value}`
  if (LINE_BREAK.test(value)) return 'contains a line break, which would split the header on its way'
  return unstorableText(value)
}

function valueBytes(value: unknown): number {
  return typeof value === 'string' ? Buffer.byteLength(value) : 0
}

function problemAt(path: string, message: string): EventProblem {
  return { code: 'INVALID_EVENT', path, message }
}
