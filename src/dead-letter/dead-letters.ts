import type { Catalogue } from '../event/catalogue.ts'
import { DEFAULT_MAX_PAYLOAD_BYTES } from '../event/encode-payload.ts'
import { createMasking, type Masking } from '../event/masking.ts'
import { type Duration, durationProblem, LONGEST_AGE, parseDuration } from '../runtime/duration.ts'
import { type Ids, systemIds } from '../runtime/ids.ts'
import { actProblems, type OperatorAct } from '../runtime/operator-act.ts'
import { isRecord, recordProblem, refuseProblems, unknownOptionProblems } from '../runtime/option-checks.ts'
import type { DeadLetterStore } from '../store/dead-letter-store.ts'
import { amendedPayload } from './amend.ts'
import { idProblems, storedTextProblem } from './query-problems.ts'
import { findLetter, type ReadDeadLetters, readDeadLetters } from './read-letters.ts'

/** Which resolved dead letters are removed. */
export interface PurgeOptions {
  /** Those that were resolved longer ago than this: `'90d'`. */
  readonly olderThan: Duration
  /** @default those of every subscription */
  readonly subscription?: string
}

/** What a person does with dead letters. */
export interface DeadLetters extends ReadDeadLetters {
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
   * Checks amended payloads, and says what of others is hidden.
   * @default none: amended payloads are taken as they are, and nothing of stored ones is shown
   */
  readonly catalogue?: Catalogue | undefined
  /** @default that of the catalogue, with everything masked that it calls sensitive */
  readonly masking?: Masking | undefined
  readonly ids?: Pick<Ids, 'eventId'> | undefined
  /** @default 1_048_576 */
  readonly maxPayloadBytes?: number | undefined
}

/** The dead letters of a store, with arguments checked before the database is asked. */
export function createDeadLetters(store: DeadLetterStore, parts: DeadLetterParts = {}): DeadLetters {
  const { catalogue = null } = parts
  return {
    ...readDeadLetters(store, parts.masking ?? createMasking(catalogue)),
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
      const amended = await amendedPayload(await findLetter(store, id), payload, catalogue, maxPayloadBytes)
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

const OPTION_NAMES: readonly (keyof PurgeOptions)[] = ['olderThan', 'subscription']

function purgeProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  const { olderThan, subscription } = options
  const problem = durationProblem(olderThan)
  const isTooLong = problem === null && parseDuration(olderThan as Duration) > parseDuration(LONGEST_AGE)
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    problem === null ? null : `olderThan ${problem}`,
    isTooLong ? 'olderThan must be at most 100 years' : null,
    storedTextProblem('subscription', subscription),
  ]
}
