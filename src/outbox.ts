import { type AlertOptions, alertProblems } from './alert/alert-options.ts'
import type { Monitor } from './alert/monitor.ts'
import { createDeadLetters, type DeadLetters } from './dead-letter/dead-letters.ts'
import { moveKeyAside } from './dead-letter/move-aside.ts'
import { createRedrive, type Redrive } from './dead-letter/redrive.ts'
import { keyProblem } from './dead-letter/redrive-problems.ts'
import type { Catalogue } from './event/catalogue.ts'
import type { EventHeaders } from './event/event.ts'
import { createMasking, type Masking, type SensitiveOptions, sensitiveProblems } from './event/masking.ts'
import { createProof, type Proof } from './inspect/proof.ts'
import { LOGGER_METHODS, type Logger, silentLogger } from './observe/logger.ts'
import type { Meter } from './observe/meter.ts'
import { type Tracing, tracingProblem } from './observe/tracing.ts'
import type { EventBus } from './publish/event-bus.ts'
import {
  type ClientOf,
  type InTransactionOptions,
  inTransactionThen,
  type TransactionPool,
} from './publish/in-transaction.ts'
import { createObservedBus } from './publish/observed-bus.ts'
import { publisherProblems } from './publish/publisher.ts'
import { createExports, type Exports } from './retain/exports.ts'
import { createRetention, type Retention } from './retain/retention.ts'
import { type RetentionOptions, resolveRetention, retentionProblems } from './retain/retention-options.ts'
import { type Clock, systemClock } from './runtime/clock.ts'
import { type Ids, systemIds } from './runtime/ids.ts'
import { actProblems, type OperatorAct } from './runtime/operator-act.ts'
import {
  booleanProblem,
  functionProblem,
  isRecord,
  methodsProblem,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
} from './runtime/option-checks.ts'
import { property } from './runtime/property.ts'
import { type Random, systemRandom } from './runtime/random.ts'
import type { SubscriptionStatus } from './store/inspect-store.ts'
import type { MovedAside } from './store/redrive-store.ts'
import type { OutboxStore } from './store/store.ts'
import type { RetireReport } from './store/subscription-store.ts'
import { composeWorker, type OutboxParts } from './worker/compose-worker.ts'
import type { Relay, Subscription } from './worker/subscription.ts'
import type { SubscriptionOptions } from './worker/subscription-options.ts'
import { subscriptionProblems } from './worker/subscription-problems.ts'
import { transactionHooks } from './worker/transaction-hooks.ts'
import { WakeBell } from './worker/wake-bell.ts'
import type { Worker } from './worker/worker.ts'
import { monitorAlone } from './worker/worker-alerts.ts'
import type { WorkerOptions } from './worker/worker-options.ts'

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
  /**
   * What becomes of the fields that the catalogue calls `sensitive`, by where they would go: `'mask'`, or `'keep'` where
   * a full trail must be kept, as in `{ audit: 'keep' }`.
   * @default masked everywhere
   */
  readonly sensitive?: SensitiveOptions
  /** Counts what is published and what workers do: `prometheusMetrics({ store, events })`. */
  readonly metrics?: Meter
  /** Carries traces from publishers to handlers: `openTelemetry()` of `commitpost/otel`. */
  readonly tracing?: Tracing
  /**
   * How long events are kept that everybody is done with. Workers see to it each day.
   * @default for ever
   */
  readonly retention?: RetentionOptions
  /** Time, for tests. */
  readonly clock?: Clock
  /** Chance, for tests. */
  readonly random?: Random
  /** Identities, for tests. */
  readonly ids?: Ids
}

/** Who retires a subscription, why, and how far that may go. */
export interface RetireAct extends OperatorAct {
  /**
   * True sets its open deliveries aside, as dead letters that are resolved.
   * @default false: refused while there are any
   */
  readonly discard?: boolean
  /**
   * True retires it although a live worker serves it. That one would register it anew when it starts again.
   * @default false
   */
  readonly force?: boolean
}

/** A transactional outbox: publishes inside your transactions, and delivers after their commit. */
export interface Outbox<C extends Catalogue, Tx> extends EventBus<C, Tx> {
  /** The catalogue it was made with. */
  readonly events: C
  /** What it shows of payloads, by where that goes: for sinks of your own. */
  readonly masking: Masking
  /** What a person does with events that failed for good. */
  readonly deadLetters: DeadLetters
  /** Delivers many of them again: plan, then apply. */
  readonly redrive: Redrive
  /** The proof that nothing is lost: verify, doctor, why, and the audit of the operator log. */
  readonly proof: Proof
  /** Cold exports: streams as files that can be checked years later. */
  readonly exports: Exports
  /** What becomes of events that everybody is done with. */
  readonly retention: Retention
  /**
   * Runs the work between BEGIN and COMMIT on a client of the pool, and wakes the workers after the commit. An event that
   * the work publishes last goes with COMMIT in one round trip: what the server has against it is thrown from here.
   */
  inTransaction<Pool extends TransactionPool, Result>(
    pool: Pool,
    work: (tx: ClientOf<Pool>) => Promise<Result>,
    options?: InTransactionOptions,
  ): Promise<Result>
  /** Says that events were committed: workers look at once instead of at their next poll. Costs next to nothing. */
  wake(): void
  /** Declares a subscription for `worker`, typed by the catalogue. @throws InvalidOptionsError with all its problems. */
  subscription(name: string, options: SubscriptionOptions<C, Tx>): Subscription<C, Tx>
  /** Makes a worker for these subscriptions. @throws InvalidOptionsError with all problems of all of them. */
  worker(subscriptions: readonly (Subscription<C, Tx> | Relay)[], options?: WorkerOptions): Worker
  /**
   * Makes a monitor that runs without a worker: one that also tells when all workers are gone. Workers bring their own.
   * @throws InvalidOptionsError with all problems of the options.
   */
  monitor(options?: AlertOptions): Monitor
  /** Stops claims of a subscription, for every worker at once. What is running goes on. */
  pause(subscriptionName: string, act: OperatorAct): Promise<void>
  /** Ends a pause. */
  resume(subscriptionName: string, act: OperatorAct): Promise<void>
  /**
   * Ends a subscription that no code has any more: nothing is delivered to it from then on. Refused while a live worker
   * serves it, unless `force`, and while deliveries are open, unless `discard`: then each is kept as a dead letter that
   * is resolved. Its name can be given again, to a subscription that begins by its own `startFrom`.
   */
  retire(subscriptionName: string, act: RetireAct): Promise<RetireReport>
  /**
   * Frees a key of an ordered subscription that a dead letter blocks, without deciding on its events: what waits behind
   * the dead letter becomes dead letters too (`MOVED_ASIDE`), and new events of the key are delivered. They can be
   * re-driven later, in order. `free` is false where a worker still has one of its events in hand: call it again.
   */
  moveAside(subscriptionName: string, orderingKey: string, act: OperatorAct): Promise<MovedAside>
  /** How every subscription stands. */
  status(): Promise<readonly SubscriptionStatus[]>
}

/** Makes an outbox. Opens no connection by itself. */
export function createOutbox<C extends Catalogue, Tx>(options: OutboxOptions<C, Tx>): Outbox<C, Tx> {
  const parts = resolveOutboxOptions(options)
  const { store, events, clock } = parts
  const bell = new WakeBell(options.notify === false ? null : () => store.notifyWorkers(), clock)
  const hooks = transactionHooks(bell, store)
  const bus = createObservedBus<C, Tx>({ ...options, catalogue: events, store })
  const setPaused = async (name: string, isPaused: boolean, act: OperatorAct): Promise<void> => {
    refuseProblems(isPaused ? 'pause' : 'resume', [...nameProblems(name), ...actProblems(act)])
    await store.setPaused(name, isPaused, act.operator, act.note ?? null)
  }
  return {
    ...bus,
    events,
    ...careOf(parts, options.maxPayloadBytes),
    inTransaction: (pool, work, given = {}) => inTransactionThen(pool, work, given, hooks),
    wake: () => bell.ring(),
    subscription: (name, given) => {
      refuseProblems(`subscription ${shown(name)}`, subscriptionProblems(events, name, given))
      return { name, options: given }
    },
    worker: (subscriptions, given = {}) => composeWorker(parts, bus, bell, subscriptions, given),
    monitor: (given = {}) => {
      refuseProblems('the monitor', alertProblems(given, 'the options'))
      return monitorAlone(parts, given)
    },
    pause: (name, act) => setPaused(name, true, act),
    resume: (name, act) => setPaused(name, false, act),
    retire: async (name, act) => {
      refuseProblems('retire', [
        ...nameProblems(name),
        ...actProblems(act, ['discard', 'force']),
        booleanProblem('discard', act?.discard),
        booleanProblem('force', act?.force),
      ])
      const { operator, note = null, discard = false, force = false } = act
      return store.retireSubscription(name, { operator, note, discard, force })
    },
    moveAside: async (name, key, act) => {
      refuseProblems('moveAside', [...nameProblems(name), keyProblem(key ?? null), ...actProblems(act)])
      return moveKeyAside(store, clock, name, key, act)
    },
    status: () => store.subscriptionStatuses(),
  }
}

/** What people do with what is in the tables, and what they are shown of it. */
function careOf<C extends Catalogue, Tx>(
  parts: OutboxParts<C, Tx>,
  maxPayloadBytes: number | undefined,
): Pick<Outbox<C, Tx>, 'masking' | 'deadLetters' | 'redrive' | 'exports' | 'retention' | 'proof'> {
  const { store, events, masking, ids, clock } = parts
  return {
    masking,
    deadLetters: createDeadLetters(store, { catalogue: events, masking, ids, maxPayloadBytes }),
    redrive: createRedrive(store, clock),
    exports: createExports({ openStore: () => store.openExports(), masking, clock }),
    retention: createRetention({ ...parts, store: store.retention }),
    proof: createProof(store, () => events.events.map(({ storedAs }) => storedAs), masking),
  }
}

// A text that no column can hold is the name of nothing.
function nameProblems(name: unknown): readonly (string | null)[] {
  const hasNul = typeof name === 'string' && name.includes('\0')
  return [
    hasNul
      ? 'the subscription must not contain a NUL character'
      : textProblem('the subscription', name ?? null),
  ]
}

function resolveOutboxOptions<C extends Catalogue, Tx>(options: OutboxOptions<C, Tx>): OutboxParts<C, Tx> {
  refuseProblems('the outbox', outboxProblems(options))
  const masking = createMasking(options.events, options.sensitive)
  return {
    store: options.store,
    events: options.events,
    masking,
    logger: options.logger ?? silentLogger,
    metrics: options.metrics,
    tracing: options.tracing,
    retention:
      options.retention === undefined ? null : resolveRetention(options.retention, options.events, masking),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    ids: options.ids ?? systemIds,
  }
}

const OPTION_NAMES: readonly (keyof OutboxOptions<Catalogue, unknown>)[] = [
  'store',
  'events',
  'logger',
  'maxPayloadBytes',
  'notify',
  'ambientHeaders',
  'sensitive',
  'metrics',
  'tracing',
  'retention',
  'clock',
  'random',
  'ids',
]

function outboxProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the argument', options)]
  const { store, events } = options
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    typeof property(store, 'openWorker') === 'function'
      ? null
      : `store must be a store, such as postgresStore({ pool }), but is ${shown(store)}`,
    typeof property(events, 'read') === 'function'
      ? null
      : `events must be a catalogue: defineEvents({ … }), but is ${shown(events)}`,
    booleanProblem('notify', options['notify']),
    methodsProblem('logger', options['logger'], LOGGER_METHODS),
    methodsProblem('metrics', options['metrics'], ['observer', 'published']),
    tracingProblem(options['tracing']),
    ...sensitiveProblems(options['sensitive']),
    ...retentionProblems(options['retention']),
    methodsProblem('clock', options['clock'], ['now', 'monotonicMs', 'sleep']),
    functionProblem('random', options['random']),
    ...publisherProblems(options),
  ]
}
