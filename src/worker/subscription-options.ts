import type { HandlerContext, HandlersOf, Middleware, Once } from '../dispatch/handler.ts'
import type { Transport } from '../dispatch/transport.ts'
import type { Catalogue, EventName, EventsByName } from '../event/catalogue.ts'
import type { EventBus } from '../publish/event-bus.ts'
import type { ClientOf, TransactionPool } from '../publish/in-transaction.ts'
import type { Backoff } from '../settle/backoff.ts'
import type { ErrorClassifier } from '../settle/classify.ts'
import type { Engine, OrderBy, StartFrom } from '../store/subscription-store.ts'
import type { RedrivePolicy } from './redrive-policy.ts'

/** `ctx.once`, for a transaction of the handler's own or for a pool to open one on. */
export interface OnceMethod<Tx> {
  /** Opens a transaction on the pool, runs the work in it unless it was done before, and commits. */
  <Pool extends TransactionPool, Result>(
    pool: Pool,
    work: (tx: ClientOf<Pool>) => Promise<Result>,
  ): Promise<Once<Result>>
  /** Runs the work in the given transaction unless it was done before. */
  <Handle extends Tx, Result>(tx: Handle, work: (tx: Handle) => Promise<Result>): Promise<Once<Result>>
}

/** What a handler of a subscription gets beside its event. */
export interface SubscriptionContext<C extends Catalogue, Tx>
  extends Omit<HandlerContext<EventBus<C, Tx>['publish']>, 'once' | 'complete'> {
  /**
   * Lets an effect happen once, however often the event arrives: the work and the record that it was done commit
   * together.
   */
  readonly once: OnceMethod<Tx>
  /** Marks this delivery done inside the handler's own transaction: effect and mark commit together or not at all. */
  complete(tx: Tx): Promise<void>
}

/** Handlers by event name, each with its event's own type; `'*'` for every type that has none of its own. */
export type SubscriptionHandlers<C extends Catalogue, Tx> = HandlersOf<
  EventsByName<C>,
  SubscriptionContext<C, Tx>
>

/** Handlers for every event of the catalogue: one that is missing is an error of the compiler. */
export type ExhaustiveHandlers<C extends Catalogue, Tx> = Required<
  Pick<SubscriptionHandlers<C, Tx>, EventName<C> & keyof SubscriptionHandlers<C, Tx>>
>

/** How a subscription takes its events and what it does with them. */
export interface SubscriptionOptions<C extends Catalogue, Tx> {
  /** What to do with each event: handlers by event name, `'*'` for all others. */
  readonly on: SubscriptionHandlers<C, Tx>
  /**
   * Streams to take, `*` as a wildcard: every event of them arrives, so each needs a handler or there must be `'*'`.
   * @default the events that have a handler, whatever their stream; with `'*'`, all events
   */
  readonly streams?: readonly string[]
  /**
   * `'stream'` reads the server's log instead of having a delivery of each event: more events a second, in the order of
   * their commits, by one worker at a time. What fails becomes a delivery. See docs/log-stream.md. Fixed for the life of
   * the subscription.
   * @default 'queue'
   */
  readonly engine?: Engine
  /**
   * For engine 'stream': the most of its log that the server may keep for this subscription, in bytes. Past it the log is
   * given up and events come from the table until it has caught up.
   * @default 4 GiB
   */
  readonly walBudgetBytes?: number
  /**
   * `'aggregate'` runs the events of one ordering key one after the other, in the order they were published, and many
   * keys at once; `'total'` does so with all events of the subscription. Fixed for the life of the subscription.
   * @default 'none'
   */
  readonly order?: OrderBy
  /**
   * Into how many shares the ordering keys are split among workers, 1 to 64. Fixed for the life of the subscription.
   * @default 16 for order 'aggregate', 1 for 'total'
   */
  readonly lanes?: number
  /**
   * One event at a time over all workers of all processes: lanes 1, concurrency 1, and order 'aggregate'.
   * @default false
   */
  readonly oneAtATime?: boolean
  /**
   * What a dead letter of an ordered subscription means for the later events of its key: they wait for a person, or go
   * on without it.
   * @default 'block'
   */
  readonly onDead?: 'block' | 'continue'
  /**
   * The pause after each failed attempt: `exponential()`, `schedule()`, `fixed()`.
   * @default exponential({ base: '1s', factor: 2, cap: '300s', jitter: 0.2 })
   */
  readonly retry?: Backoff
  /**
   * How many attempts an event gets, the first included.
   * @default 5
   */
  readonly maxAttempts?: number
  /** A view of your own on errors: retry, dead, or when to try again. Undefined leaves it to the defaults. */
  readonly classify?: ErrorClassifier
  /**
   * Re-drives dead letters with these error codes by itself, after a while and a few times, under a name of its own:
   * `{ name: 'transient-errors', codes: ['ECONNREFUSED', 'HTTP_5*'], after: '5m' }`.
   * @default none: every dead letter waits for a person
   */
  readonly redrive?: RedrivePolicy
  /**
   * How many handlers run at once in one worker.
   * @default 10
   */
  readonly concurrency?: number
  /**
   * The most events one claim takes. Slow handlers get fewer: about a second's work. So do large events: no more are in
   * hand than 32 million characters of them, or `concurrency`.
   * @default 500
   */
  readonly batchSize?: number
  /**
   * The longest pause between looks for work, in milliseconds; with `drain: false`, the pause between all of them.
   * @default 1_000
   */
  readonly pollMs?: number
  /**
   * The first pause once work has run out, in milliseconds; it doubles up to `pollMs`.
   * @default 20
   */
  readonly pollMinMs?: number
  /**
   * True claims until nothing is left. False makes one claim of at most `batchSize` every `pollMs`.
   * @default true
   */
  readonly drain?: boolean
  /**
   * How long a handler may take, in milliseconds; null for ever.
   * @default 60_000
   */
  readonly timeoutMs?: number | null
  /**
   * Where a new subscription begins. Only its first registration counts.
   * @default 'now'
   */
  readonly startFrom?: StartFrom
  /**
   * Around every handler, the first outermost.
   * @default none
   */
  readonly middleware?: readonly Middleware[]
}

/** What only handlers have a use for. */
export const OF_HANDLERS = ['on', 'concurrency', 'timeoutMs', 'middleware', 'classify'] as const

/**
 * How a subscription takes its events, and which transport it hands them to, up to `batchSize` at once, as they are
 * stored. Without `streams` it takes all events.
 */
export interface RelayOptions
  extends Omit<SubscriptionOptions<Catalogue, unknown>, (typeof OF_HANDLERS)[number]> {
  /** Where the events go: `kafka({ … })` of `commitpost/kafka`. */
  readonly via: Transport
}
