import {
  actProblems,
  createDeadLetters,
  type DeadLetters,
  type OperatorAct,
} from './dead-letter/dead-letters.ts'
import type { Catalogue } from './event/catalogue.ts'
import type { EventHeaders } from './event/event.ts'
import { logObserver } from './observe/log-observer.ts'
import { type Logger, silentLogger } from './observe/logger.ts'
import { combineObservers } from './observe/worker-events.ts'
import type { EventBus } from './publish/event-bus.ts'
import {
  type ClientOf,
  type InTransactionOptions,
  inTransaction,
  type TransactionPool,
} from './publish/in-transaction.ts'
import { createPublisher } from './publish/publisher.ts'
import { type Clock, systemClock } from './runtime/clock.ts'
import { InvalidOptionsError } from './runtime/errors.ts'
import { type Ids, systemIds } from './runtime/ids.ts'
import { property } from './runtime/property.ts'
import { type Random, systemRandom } from './runtime/random.ts'
import type { SubscriptionStatus } from './store/inspect-store.ts'
import type { OutboxStore } from './store/store.ts'
import { createContextServices } from './worker/context-services.ts'
import { resolveSubscriptions } from './worker/resolve-subscriptions.ts'
import { type Subscription, type SubscriptionOptions, subscription } from './worker/subscription.ts'
import { WakeBell } from './worker/wake-bell.ts'
import { createWorker, type Worker } from './worker/worker.ts'
import { resolveWorkerOptions, type WorkerOptions, workerProblems } from './worker/worker-options.ts'

/** What an outbox is made of. */
export interface OutboxOptions<C extends Catalogue, Tx> {
  /** Where events are kept: `postgresStore({ pool })`. */
  readonly store: OutboxStore<Tx>
  /** The catalogue: `defineEvents({ … })`. */
  readonly events: C
  /**
   * Gets a line for everything workers do. pino fits.
   * @default silent
   */
  readonly logger?: Logger
  /**
   * The largest payload, in bytes of JSON.
   * @default 1_048_576
   */
  readonly maxPayloadBytes?: number
  /**
   * True tells the workers of other processes after a commit that there is work: a NOTIFY of its own, never part of a
   * business transaction, and for many commits at once. False leaves them to their polling.
   * @default true
   */
  readonly notify?: boolean
  /** Headers for every event published from here, such as the current trace. */
  readonly ambientHeaders?: () => EventHeaders
  /** Time, for tests. */
  readonly clock?: Clock
  /** Chance, for tests. */
  readonly random?: Random
  /** Identities, for tests. */
  readonly ids?: Ids
}

/** A transactional outbox: publishes inside your transactions, and delivers after their commit. */
export interface Outbox<C extends Catalogue, Tx> extends EventBus<C, Tx> {
  /** The catalogue it was made with. */
  readonly events: C
  /** What a person does with events that failed for good. */
  readonly deadLetters: DeadLetters
  /** Runs the work between BEGIN and COMMIT on a client of the pool, and wakes the workers after the commit. */
  inTransaction<Pool extends TransactionPool, Result>(
    pool: Pool,
    work: (tx: ClientOf<Pool>) => Promise<Result>,
    options?: InTransactionOptions,
  ): Promise<Result>
  /** Says that events were committed: workers look at once instead of at their next poll. Costs next to nothing. */
  wake(): void
  /** Declares a subscription for `worker`, typed by the catalogue. */
  subscription(name: string, options: SubscriptionOptions<C, Tx>): Subscription<C, Tx>
  /** Makes a worker for these subscriptions. @throws InvalidOptionsError with all problems of all of them. */
  worker(subscriptions: readonly Subscription<C, Tx>[], options?: WorkerOptions): Worker
  /** Stops claims of a subscription, for every worker at once. What is running goes on. */
  pause(subscriptionName: string, act: OperatorAct): Promise<void>
  /** Ends a pause. */
  resume(subscriptionName: string, act: OperatorAct): Promise<void>
  /** How every subscription stands. */
  status(): Promise<readonly SubscriptionStatus[]>
}

/** Makes an outbox. Opens no connection by itself. */
export function createOutbox<C extends Catalogue, Tx>(options: OutboxOptions<C, Tx>): Outbox<C, Tx> {
  const parts = resolveOutboxOptions(options)
  const { store, events, clock } = parts
  const bell = new WakeBell(options.notify === false ? null : () => store.notifyWorkers(), clock)
  const bus = createPublisher<C, Tx>({ ...options, catalogue: events, store })
  const setPaused = async (name: string, isPaused: boolean, act: OperatorAct): Promise<void> => {
    const problems = actProblems(act)
    if (problems.length > 0) throw new InvalidOptionsError(isPaused ? 'pause' : 'resume', problems)
    await store.setPaused(name, isPaused, act.operator, act.note ?? null)
  }
  return {
    ...bus,
    events,
    deadLetters: createDeadLetters(store),
    inTransaction: (pool, work, given = {}) => inTransaction(pool, work, wakingAfterCommit(given, bell)),
    wake: () => bell.ring(),
    subscription,
    worker: (subscriptions, given = {}) => composeWorker(parts, bus, bell, subscriptions, given),
    pause: (name, act) => setPaused(name, true, act),
    resume: (name, act) => setPaused(name, false, act),
    status: () => store.subscriptionStatuses(),
  }
}

interface ResolvedOutboxOptions<C extends Catalogue, Tx> {
  readonly store: OutboxStore<Tx>
  readonly events: C
  readonly logger: Logger
  readonly clock: Clock
  readonly random: Random
  readonly ids: Ids
}

function resolveOutboxOptions<C extends Catalogue, Tx>(
  options: OutboxOptions<C, Tx>,
): ResolvedOutboxOptions<C, Tx> {
  const problems: string[] = []
  if (typeof property(options?.store, 'openWorker') !== 'function') {
    problems.push('store must be a store, such as postgresStore({ pool })')
  }
  if (typeof property(options?.events, 'read') !== 'function') {
    problems.push('events must be a catalogue: defineEvents({ … })')
  }
  if (problems.length > 0) throw new InvalidOptionsError('the outbox', problems)
  return {
    store: options.store,
    events: options.events,
    logger: options.logger ?? silentLogger,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    ids: options.ids ?? systemIds,
  }
}

function wakingAfterCommit(options: InTransactionOptions, bell: WakeBell): InTransactionOptions {
  return {
    ...options,
    afterCommit: async () => {
      bell.ring()
      await options.afterCommit?.()
    },
  }
}

function composeWorker<C extends Catalogue, Tx>(
  { store, events, clock, random, ids, logger: outboxLogger }: ResolvedOutboxOptions<C, Tx>,
  bus: EventBus<C, Tx>,
  bell: WakeBell,
  subscriptions: readonly Subscription<C, Tx>[],
  given: WorkerOptions,
): Worker {
  const options = resolveWorkerOptions(given)
  const logger = given.logger ?? outboxLogger
  // Typed by the catalogue up to here; inside, names and handlers are what they are at run time.
  const untyped = subscriptions as unknown as readonly Subscription<Catalogue, unknown>[]
  let hasPublished = false
  return createWorker({
    id: options.workerId ?? ids.workerId(),
    openStore: () => store.openWorker(),
    subscriptions: resolveSubscriptions(events, untyped, workerProblems(given)),
    options,
    catalogue: events,
    services: createContextServices({
      store,
      bus: bus as unknown as EventBus<Catalogue, unknown>,
      onPublished: () => {
        hasPublished = true
      },
    }),
    clock,
    random,
    logger,
    observer: combineObservers([
      ...(logger === silentLogger ? [] : [logObserver(logger)]),
      ...options.observers,
    ]),
    onAttemptEnded: () => {
      if (!hasPublished) return
      hasPublished = false
      bell.ring()
    },
    bell,
  })
}
