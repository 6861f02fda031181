import { InvalidOptionsError, NotFoundError } from '../runtime/errors.ts'
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

/** The dead letters of a store, with arguments checked before the database is asked. */
export function createDeadLetters(store: DeadLetterStore): DeadLetters {
  return {
    list: async (query = {}) => {
      refuse('dead letters', queryProblems(query))
      return store.listDeadLetters(query)
    },
    count: async (query = {}) => store.countDeadLetters(query),
    show: async (id) => {
      refuse('a dead letter', idProblems(id))
      const found = await store.findDeadLetter(id)
      if (found === null) throw new NotFoundError('dead letter', id)
      return found
    },
    retry: async (id, act) => {
      refuse('retrying a dead letter', [...idProblems(id), ...actProblems(act)])
      await store.retryDeadLetter(id, act.operator, act.note ?? null)
    },
    resolve: async (id, act) => {
      refuse('resolving a dead letter', [...idProblems(id), ...actProblems(act)])
      await store.resolveDeadLetter(id, act.operator, act.note ?? null)
    },
  }
}

/** What is wrong with the description of an act, for all acts that are recorded. */
export function actProblems(act: OperatorAct): readonly string[] {
  const operator: unknown = act?.operator
  const isNamed = typeof operator === 'string' && operator.trim() !== ''
  return isNamed ? [] : ['operator must name who does this: it is recorded with the act']
}

function idProblems(id: unknown): readonly string[] {
  return typeof id === 'string' && ID.test(id)
    ? []
    : ['the id must be a whole number as text, as `list` returns it']
}

function queryProblems({ limit, before }: DeadLetterQuery): readonly string[] {
  const isFine = limit === undefined || (Number.isSafeInteger(limit) && limit >= 1 && limit <= MOST_AT_ONCE)
  return [
    ...(isFine ? [] : [`limit must be a whole number from 1 to ${MOST_AT_ONCE}, but is ${String(limit)}`]),
    ...(before === undefined ? [] : idProblems(before)),
  ]
}

function refuse(what: string, problems: readonly string[]): void {
  if (problems.length > 0) throw new InvalidOptionsError(what, problems)
}
