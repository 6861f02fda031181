import type { Catalogue } from '../event/catalogue.ts'
import type { EventBus } from '../publish/event-bus.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Ids } from '../runtime/ids.ts'
import {
  functionProblem,
  isRecord,
  methodsProblem,
  patternListProblem,
  recordProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import type { Random } from '../runtime/random.ts'
import type { Backoff } from '../settle/backoff.ts'
import { retryProblems } from '../settle/retry-policy.ts'
import type { WorkerStore } from '../store/store.ts'
import { subscriptionNameProblem } from './subscription-problems.ts'

/** What a repository is made of. */
export interface OutboxRepositoryOptions<C extends Catalogue, Tx> {
  /** The outbox: what `insert` publishes with. */
  readonly outbox: EventBus<C, Tx>
  /** The store the outbox was made with. */
  readonly store: { openWorker(): WorkerStore }
  /** The subscription whose events `findPending` takes. It is registered on first use. */
  readonly subscription: string
  /** @default every stream */
  readonly streams?: readonly string[]
  /**
   * How long what `findPending` returned may take to be marked, in milliseconds. Nothing extends it.
   * @default 300_000
   */
  readonly leaseMs?: number
  /** @default 5 */
  readonly maxAttempts?: number
  /** @default exponential, from 1 s to 5 min */
  readonly retry?: Backoff
  readonly ids?: Pick<Ids, 'workerId'>
  readonly random?: Random
  readonly clock?: Clock
}

const OPTION_NAMES: readonly (keyof OutboxRepositoryOptions<Catalogue, unknown>)[] = [
  'outbox',
  'store',
  'subscription',
  'streams',
  'leaseMs',
  'maxAttempts',
  'retry',
  'ids',
  'random',
  'clock',
]

/** What is wrong with the options of a repository. */
export function repositoryProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the argument', options)]
  const { retry: backoff, maxAttempts } = options
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    methodsProblem('outbox', options['outbox'] ?? null, ['publish']),
    methodsProblem('store', options['store'] ?? null, ['openWorker']),
    subscriptionNameProblem(options['subscription']),
    patternListProblem('streams', options['streams']),
    wholeNumberProblem('leaseMs', options['leaseMs'], 100, 86_400_000),
    ...retryProblems({ backoff, maxAttempts }),
    methodsProblem('ids', options['ids'], ['workerId']),
    functionProblem('random', options['random']),
    methodsProblem('clock', options['clock'], ['now', 'monotonicMs', 'sleep']),
  ]
}
