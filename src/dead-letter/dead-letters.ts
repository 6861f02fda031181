import { NotFoundError } from '../runtime/errors.ts'
import {
  booleanProblem,
  isRecord,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import type { DeadLetter, DeadLetterQuery, DeadLetterStore } from '../store/dead-letter-store.ts'

/** Who acts, and why. Both are kept with the act. */
export interface OperatorAct {
  readonly operator: string
  readonly note?: string
}

/** What a person does with dead letters. */
export interface DeadLetters {
  /** Newest first, those that wait for a person unless asked otherwise. */
  list(query?: DeadLetterQuery): Promise<readonly DeadLetter[]>
  count(query?: Omit<DeadLetterQuery, 'before' | 'limit'>): Promise<number>
  /** @throws NotFoundError when there is none with this id. */
  show(id: string): Promise<DeadLetter>
  /** Sends it on its way again, with all its attempts. Dying again makes a new dead letter. */
  retry(id: string, act: OperatorAct): Promise<void>
  /** Settles it by hand: it stays dead, and what waits behind it on its ordering key goes on. */
  resolve(id: string, act: OperatorAct): Promise<void>
}

const MOST_AT_ONCE = 1_000
const ID = /^[1-9]\d{0,18}$/
const TEXT_FILTERS = ['subscription', 'eventType', 'errorCode'] as const
const FILTERS: readonly string[] = [...TEXT_FILTERS, 'resolved']

/** The dead letters of a store, with arguments checked before the database is asked. */
export function createDeadLetters(store: DeadLetterStore): DeadLetters {
  return {
    list: async (query = {}) => {
      refuseProblems('listing dead letters', queryProblems(query, [...FILTERS, 'before', 'limit']))
      return store.listDeadLetters(query)
    },
    count: async (query = {}) => {
      refuseProblems('counting dead letters', queryProblems(query, FILTERS))
      return store.countDeadLetters(query)
    },
    show: async (id) => {
      refuseProblems('a dead letter', idProblems(id))
      const found = await store.findDeadLetter(id)
      if (found === null) throw new NotFoundError('dead letter', id)
      return found
    },
    retry: async (id, act) => {
      refuseProblems('retrying a dead letter', [...idProblems(id), ...actProblems(act)])
      await store.retryDeadLetter(id, act.operator, act.note ?? null)
    },
    resolve: async (id, act) => {
      refuseProblems('resolving a dead letter', [...idProblems(id), ...actProblems(act)])
      await store.resolveDeadLetter(id, act.operator, act.note ?? null)
    },
  }
}

/** What is wrong with the description of an act, for all acts that are recorded. Some may say more than who and why. */
export function actProblems(act: unknown, more: readonly string[] = []): readonly (string | null)[] {
  if (!isRecord(act)) return [`the act must be { operator, note? }, but is ${shown(act)}`]
  const { operator, note } = act
  const isNamed = typeof operator === 'string' && operator.trim() !== ''
  return [
    isNamed ? null : 'operator must name who does this: it is recorded with the act',
    note === undefined || note === null || typeof note === 'string'
      ? null
      : `note must be text, but is ${shown(note)}`,
    ...unknownOptionProblems(act, ['operator', 'note', ...more]),
  ]
}

function idProblems(id: unknown): readonly string[] {
  return typeof id === 'string' && ID.test(id)
    ? []
    : [`the id must be a whole number as text, as \`list\` returns it, but is ${shown(id)}`]
}

function queryProblems(query: unknown, known: readonly string[]): readonly (string | null)[] {
  if (!isRecord(query)) return [recordProblem('the query', query)]
  const { resolved, before } = query
  return [
    ...unknownOptionProblems(query, known),
    ...TEXT_FILTERS.map((name) => filterProblem(name, query[name])),
    resolved === null ? null : booleanProblem('resolved', resolved),
    wholeNumberProblem('limit', query['limit'], 1, MOST_AT_ONCE),
    ...(before === undefined ? [] : idProblems(before)),
  ]
}

// A text that no column can hold finds nothing in any of them: certainly a mistake.
function filterProblem(name: string, value: unknown): string | null {
  if (typeof value === 'string' && value.includes('\0')) return `${name} must not contain a NUL character`
  return textProblem(name, value)
}
