import { actProblems } from '../runtime/operator-act.ts'
import {
  booleanProblem,
  functionProblem,
  isRecord,
  methodsProblem,
  oneOfProblem,
  recordProblem,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { DEAD_LETTER_REASONS } from '../store/dead-letter-store.ts'
import { MOST_PLANNED_IDS, type RedriveFilter } from '../store/redrive-store.ts'
import type { ApplyAct } from './apply-plan.ts'

const ID = /^[1-9]\d{0,18}$/
const FASTEST = 10_000
const MOST_AT_ONCE = 10_000

type Problems = readonly (string | null)[]

/** What is wrong with the id of a plan. */
export function planIdProblems(id: unknown): Problems {
  const isFine = typeof id === 'string' && ID.test(id)
  return [
    isFine ? null : `the id must be a whole number as text, as \`plan\` returns it, but is ${shown(id)}`,
  ]
}

const TEXT_FILTERS = ['subscription', 'stream', 'eventType', 'errorCode', 'fingerprint'] as const

const OPTION_NAMES: readonly (keyof RedriveFilter)[] = [
  'subscription',
  'stream',
  'eventType',
  'reason',
  'errorCode',
  'fingerprint',
  'orderingKey',
  'failedFrom',
  'failedTo',
  'ids',
]

/** What is wrong with a filter. */
export function filterProblems(filter: unknown): Problems {
  if (!isRecord(filter)) return [recordProblem('the filter', filter)]
  const { orderingKey, failedFrom, failedTo, ids } = filter
  return [
    ...unknownOptionProblems(filter, OPTION_NAMES),
    ...TEXT_FILTERS.map((name) => storedTextProblem(name, filter[name])),
    oneOfProblem('reason', filter['reason'], Object.keys(DEAD_LETTER_REASONS)),
    keyProblem(orderingKey),
    dateProblem('failedFrom', failedFrom),
    dateProblem('failedTo', failedTo),
    idsProblem(ids),
  ]
}

/** What keeps a text from being an ordering key. An empty one is: that of a subscription in total order. */
export function keyProblem(key: unknown): string | null {
  if (key === undefined || key === '') return null
  return storedTextProblem('orderingKey', key)
}

// A text that no column can hold finds nothing in any of them: certainly a mistake.
function storedTextProblem(name: string, value: unknown): string | null {
  if (typeof value === 'string' && value.includes('\0')) return `${name} must not contain a NUL character`
  return textProblem(name, value)
}

function dateProblem(name: string, value: unknown): string | null {
  if (value === undefined || (value instanceof Date && !Number.isNaN(value.getTime()))) return null
  return `${name} must be a valid Date, but is ${value instanceof Date ? 'an invalid one' : shown(value)}`
}

function idsProblem(ids: unknown): string | null {
  if (ids === undefined) return null
  const isList = Array.isArray(ids) && ids.length > 0 && ids.length <= MOST_PLANNED_IDS
  if (isList && ids.every((id) => typeof id === 'string' && ID.test(id))) return null
  return `ids must be a list of 1 to ${MOST_PLANNED_IDS} whole numbers as text, as \`list\` returns them, but is ${shown(ids)}`
}

const APPLY_OPTIONS: readonly Exclude<keyof ApplyAct, 'operator' | 'note'>[] = [
  'ratePerSecond',
  'stopWhenFailedShare',
  'minSample',
  'atOnce',
  'resume',
  'onProgress',
  'signal',
]

/** What is wrong with how a plan is to be applied. */
export function applyProblems(act: unknown): Problems {
  const problems = actProblems(act, APPLY_OPTIONS)
  if (!isRecord(act)) return problems
  const { ratePerSecond, stopWhenFailedShare } = act
  return [
    ...problems,
    numberProblem('ratePerSecond', ratePerSecond, FASTEST),
    numberProblem('stopWhenFailedShare', stopWhenFailedShare, 1),
    wholeNumberProblem('minSample', act['minSample'], 1, MOST_AT_ONCE),
    wholeNumberProblem('atOnce', act['atOnce'], 1, MOST_AT_ONCE),
    booleanProblem('resume', act['resume']),
    functionProblem('onProgress', act['onProgress']),
    methodsProblem('signal', act['signal'], ['addEventListener']),
  ]
}

function numberProblem(name: string, value: unknown, most: number): string | null {
  if (value === undefined || value === null) return null
  const isFine = typeof value === 'number' && value > 0 && value <= most
  return isFine
    ? null
    : `${name} must be a number above 0 and at most ${most}, or null, but is ${shown(value)}`
}
