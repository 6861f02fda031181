import {
  booleanProblem,
  isRecord,
  oneOfProblem,
  recordProblem,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { unstorableText } from '../runtime/unstorable-text.ts'
import { DEAD_LETTER_REASONS } from '../store/dead-letter-store.ts'

const MOST_AT_ONCE = 1_000
const ID = /^[1-9]\d{0,18}$/
const TEXT_FILTERS = [
  'subscription',
  'stream',
  'eventType',
  'errorCode',
  'text',
  'fingerprint',
  'aggregateType',
  'aggregateId',
] as const
const TIME_FILTERS = ['failedFrom', 'failedTo'] as const
const FILTERS: readonly string[] = [...TEXT_FILTERS, ...TIME_FILTERS, 'reason', 'resolved']

/** What is wrong with the id of a dead letter. */
export function idProblems(id: unknown): readonly string[] {
  return typeof id === 'string' && ID.test(id)
    ? []
    : [`the id must be a whole number as text, as \`list\` returns it, but is ${shown(id)}`]
}

/** What is wrong with a choice of dead letters. Some queries may say more than which ones. */
export function filterProblems(filter: unknown, more: readonly string[] = []): readonly (string | null)[] {
  if (!isRecord(filter)) return [recordProblem('the query', filter)]
  const { resolved, reason, failedFrom, failedTo } = filter
  return [
    ...unknownOptionProblems(filter, [...FILTERS, ...more]),
    ...TEXT_FILTERS.map((name) => storedTextProblem(name, filter[name])),
    ...TIME_FILTERS.map((name) => timeProblem(name, filter[name])),
    failedFrom instanceof Date && failedTo instanceof Date && failedFrom >= failedTo
      ? 'failedFrom must be before failedTo: nothing can lie between'
      : null,
    oneOfProblem('reason', reason, Object.keys(DEAD_LETTER_REASONS)),
    resolved === null ? null : booleanProblem('resolved', resolved),
    ...pageProblems(filter, 'before'),
  ]
}

/** What is wrong with a query for blocked keys. */
export function blockedProblems(query: unknown): readonly (string | null)[] {
  if (!isRecord(query)) return [recordProblem('the query', query)]
  return [
    ...unknownOptionProblems(query, ['subscription', 'after', 'limit']),
    storedTextProblem('subscription', query['subscription']),
    ...pageProblems(query, 'after'),
  ]
}

/** A text that no column can hold finds nothing in any of them: certainly a mistake. */
export function storedTextProblem(name: string, value: unknown): string | null {
  if (typeof value === 'string' && value.includes('\0')) return `${name} must not contain a NUL character`
  const unstorable = typeof value === 'string' ? unstorableText(value) : null
  return unstorable === null ? textProblem(name, value) : `${name} ${unstorable}`
}

function pageProblems(query: Readonly<Record<string, unknown>>, bound: string): readonly (string | null)[] {
  return [
    wholeNumberProblem('limit', query['limit'], 1, MOST_AT_ONCE),
    ...(query[bound] === undefined ? [] : idProblems(query[bound])),
  ]
}

// The years that every driver and server reads the same.
const EARLIEST_MS = Date.parse('0001-01-01T00:00:00.000Z')
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z')

function timeProblem(name: string, value: unknown): string | null {
  if (value === undefined) return null
  // NaN compares false, so an invalid Date is refused with the rest.
  const isFine = value instanceof Date && value.getTime() >= EARLIEST_MS && value.getTime() <= LATEST_MS
  return isFine ? null : `${name} must be a valid Date in the years 1 to 9999, but is ${shown(value)}`
}
