import type { Catalogue } from '../event/catalogue.ts'
import { DEFAULT_MAX_PAYLOAD_BYTES } from '../event/encode-payload.ts'
import { type Duration, durationProblem, parseDuration } from '../runtime/duration.ts'
import { NotFoundError } from '../runtime/errors.ts'
import { type Ids, systemIds } from '../runtime/ids.ts'
import { actProblems, type OperatorAct } from '../runtime/operator-act.ts'
import { isRecord, recordProblem, refuseProblems, unknownOptionProblems } from '../runtime/option-checks.ts'
import type {
  BlockedKey,
  BlockedKeyQuery,
  DeadLetter,
  DeadLetterFilter,
  DeadLetterGroup,
  DeadLetterGroupQuery,
  DeadLetterQuery,
  DeadLetterStore,
} from '../store/dead-letter-store.ts'
import { amendedPayload } from './amend.ts'
import { exportDeadLetters } from './export.ts'
import { blockedProblems, filterProblems, idProblems, storedTextProblem } from './query-problems.ts'

/** Which resolved dead letters are removed. */
export interface PurgeOptions {
  /** Those that were resolved longer ago than this: `'90d'`. */
  readonly olderThan: Duration
  /** @default those of every subscription */
  readonly subscription?: string
}

/** What a person does with dead letters. */
export interface DeadLetters {
  /** Newest first, those that wait for a person unless asked otherwise. */
  list(query?: DeadLetterQuery): Promise<readonly DeadLetter[]>
  count(filter?: DeadLetterFilter): Promise<number>
  /** What is wrong with how many: dead letters by what their errors have in common, the largest groups first. */
  group(query?: DeadLetterGroupQuery): Promise<readonly DeadLetterGroup[]>
  /** @throws NotFoundError when there is none with this id. */
  show(id: string): Promise<DeadLetter>
  /** All of them, newest first, read page by page. Fields that the catalogue hides from exports are masked. */
  export(filter?: DeadLetterFilter): AsyncIterable<DeadLetter>
  /** The keys of ordered subscriptions whose events wait for a decision, longest first. */
  blocked(query?: BlockedKeyQuery): Promise<readonly BlockedKey[]>
  /** Sends it on its way again, with all its attempts. Dying again makes a new dead letter. */
  retry(id: string, act: OperatorAct): Promise<void>
  /** Settles it by hand: it stays dead, and what waits behind it on its ordering key goes on. */
  resolve(id: string, act: OperatorAct): Promise<void>
  /**
   * Delivers a new event with this payload in the place of the dead one: to its subscription only, before what waits
   * behind it on its ordering key. The original stays as it is; the new one names it in its headers `amendedFrom` and
   * `causationId`. The payload is checked as if it were published.
   * @throws InvalidEventError with everything that is wrong with the payload.
   */
  amend(id: string, payload: unknown, act: OperatorAct): Promise<{ readonly eventId: string }>
  /** Removes dead letters that were resolved long ago, in batches. What waits for a person is never touched. */
  purge(options: PurgeOptions, act: OperatorAct): Promise<{ readonly purged: number }>
}

/** What dead letters are read and amended by. */
export interface DeadLetterParts {
  /**
   * Checks amended payloads and masks exported ones.
   * @default none: payloads are taken and shown as they are
   */
  readonly catalogue?: Catalogue | undefined
  readonly ids?: Pick<Ids, 'eventId'> | undefined
  /** @default 1_048_576 */
  readonly maxPayloadBytes?: number | undefined
}

/** The dead letters of a store, with arguments checked before the database is asked. */
export function createDeadLetters(store: DeadLetterStore, parts: DeadLetterParts = {}): DeadLetters {
  const { catalogue = null } = parts
  const show: DeadLetters['show'] = async (id) => {
    refuseProblems('a dead letter', idProblems(id))
    const found = await store.findDeadLetter(id)
    if (found === null) throw new NotFoundError('dead letter', id)
    return found
  }
  return {
    ...readingOf(store, catalogue),
    show,
    retry: async (id, act) => {
      refuseProblems('retrying a dead letter', [...idProblems(id), ...actProblems(act)])
      await store.retryDeadLetter(id, act.operator, act.note ?? null)
    },
    resolve: async (id, act) => {
      refuseProblems('resolving a dead letter', [...idProblems(id), ...actProblems(act)])
      await store.resolveDeadLetter(id, act.operator, act.note ?? null)
    },
    amend: async (id, payload, act) => {
      refuseProblems('amending a dead letter', [...idProblems(id), ...actProblems(act)])
      const maxPayloadBytes = parts.maxPayloadBytes ?? DEFAULT_MAX_PAYLOAD_BYTES
      const amended = await amendedPayload(await show(id), payload, catalogue, maxPayloadBytes)
      const eventId = (parts.ids ?? systemIds).eventId()
      const { operator, note = null } = act
      await store.amendDeadLetter(id, { ...amended, eventId, operator, note })
      return { eventId }
    },
    purge: async (options, act) => {
      refuseProblems('purging dead letters', [...purgeProblems(options), ...actProblems(act)])
      const { subscription = null } = options
      const olderThanMs = parseDuration(options.olderThan, 'olderThan')
      const { operator, note = null } = act
      const purged = await store.purgeDeadLetters({ olderThanMs, subscription, operator, note })
      return { purged }
    },
  }
}

function readingOf(
  store: DeadLetterStore,
  catalogue: Catalogue | null,
): Pick<DeadLetters, 'list' | 'count' | 'group' | 'export' | 'blocked'> {
  return {
    list: async (query = {}) => {
      refuseProblems('listing dead letters', filterProblems(query, ['before', 'limit']))
      return store.listDeadLetters(query)
    },
    count: async (filter = {}) => {
      refuseProblems('counting dead letters', filterProblems(filter))
      return store.countDeadLetters(filter)
    },
    group: async (query = {}) => {
      refuseProblems('grouping dead letters', filterProblems(query, ['limit']))
      return store.groupDeadLetters(query)
    },
    export: (filter = {}) => {
      refuseProblems('exporting dead letters', filterProblems(filter))
      return exportDeadLetters(store, filter, catalogue)
    },
    blocked: async (query = {}) => {
      refuseProblems('listing blocked keys', blockedProblems(query))
      return store.blockedKeys(query)
    },
  }
}

const OPTION_NAMES: readonly (keyof PurgeOptions)[] = ['olderThan', 'subscription']

/** A hundred years: longer than any database has kept anything, and short enough for its clock. */
const LONGEST_AGE_MS = 36_525 * 86_400_000

function purgeProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  const { olderThan, subscription } = options
  const problem = durationProblem(olderThan)
  const isTooLong = problem === null && parseDuration(olderThan as Duration) > LONGEST_AGE_MS
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    problem === null ? null : `olderThan ${problem}`,
    isTooLong ? 'olderThan must be at most 100 years' : null,
    storedTextProblem('subscription', subscription),
  ]
}
