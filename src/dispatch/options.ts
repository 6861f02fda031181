import type { ClaimedDelivery } from '../delivery/delivery.ts'
import type { Classify } from '../delivery/failure.ts'
import type { OutboxEvent } from '../event/event.ts'
import { LOGGER_METHODS, type Logger, silentLogger } from '../observe/logger.ts'
import { ignoreWorkerEvents, type Observer } from '../observe/worker-events.ts'
import { type Clock, systemClock } from '../runtime/clock.ts'
import { CommitpostError } from '../runtime/errors.ts'
import {
  functionListProblem,
  functionProblem,
  isRecord,
  methodsProblem,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
} from '../runtime/option-checks.ts'
import type { DispatchedDelivery } from './attempt.ts'
import type { ContextServices, HandlerMap, Middleware } from './handler.ts'

/** Brings a stored event into the form today's handlers expect. The catalogue is one. */
export interface EventReader {
  /**
   * Upcasts, validates and names it by its name in code. Undefined for a type it does not know: only the catch-all
   * handler gets that, as it is stored. Throws with code UPCAST_FAILED or PAYLOAD_INVALID.
   */
  read(event: OutboxEvent): OutboxEvent | undefined | Promise<OutboxEvent | undefined>
}

/** What a dispatcher is made of. */
export interface DispatcherOptions<Delivery extends DispatchedDelivery = ClaimedDelivery> {
  readonly subscription: string
  readonly handlers: HandlerMap
  /** What a thrown value means; `createClassify` of settle/ makes one. */
  readonly classify: Classify
  /** @default events reach their handlers as they are stored */
  readonly reader?: EventReader
  /**
   * Around every handler, the first outermost.
   * @default none
   */
  readonly middleware?: readonly Middleware[]
  /**
   * How long a handler may take, in milliseconds, found at most a twentieth of it (a second at most) late.
   * Null lets it run for ever.
   * @default 60_000
   */
  readonly timeoutMs?: number | null
  /** @default the system's */
  readonly clock?: Clock
  /**
   * Behind `ctx.log`.
   * @default silent
   */
  readonly logger?: Logger
  /**
   * Told when a handler comes back too late.
   * @default nobody
   */
  readonly observer?: Observer
  /** @default `ctx.once`, `ctx.complete` and `ctx.publish` say that they are not available */
  readonly services?: ContextServices<Delivery>
  /**
   * Asked when this process cannot handle an event that newer code might: no handler, unknown type, a version newer
   * than the code. Returns after how many milliseconds somebody else should try, or null to fail it for good.
   * @default null for every event
   */
  readonly onNoHandler?: (event: OutboxEvent) => number | null
}

/** Dispatcher options with every default filled in. */
export type ResolvedDispatcherOptions<Delivery extends DispatchedDelivery> = Readonly<
  Required<DispatcherOptions<Delivery>>
>

/** The time a handler has unless its subscription says otherwise. */
export const DEFAULT_HANDLER_TIMEOUT_MS = 60_000

/** Fills in the defaults; throws `InvalidOptionsError` with all problems together. */
export function resolveDispatcherOptions<Delivery extends DispatchedDelivery>(
  options: DispatcherOptions<Delivery>,
): ResolvedDispatcherOptions<Delivery> {
  refuseProblems('the dispatcher', allProblems(options))
  return {
    subscription: options.subscription,
    handlers: options.handlers,
    classify: options.classify,
    reader: options.reader ?? AS_STORED,
    middleware: options.middleware ?? [],
    timeoutMs: options.timeoutMs === undefined ? DEFAULT_HANDLER_TIMEOUT_MS : options.timeoutMs,
    clock: options.clock ?? systemClock,
    logger: options.logger ?? silentLogger,
    observer: options.observer ?? ignoreWorkerEvents,
    services: options.services ?? UNAVAILABLE,
    onNoHandler: options.onNoHandler ?? (() => null),
  }
}

const OPTION_NAMES: readonly (keyof DispatcherOptions)[] = [
  'subscription',
  'handlers',
  'classify',
  'reader',
  'middleware',
  'timeoutMs',
  'clock',
  'logger',
  'observer',
  'services',
  'onNoHandler',
]

function allProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    textProblem('subscription', options['subscription'] ?? null),
    functionProblem('classify', options['classify'] ?? null),
    methodsProblem('reader', options['reader'], ['read']),
    methodsProblem('clock', options['clock'], ['now', 'monotonicMs', 'sleep']),
    methodsProblem('logger', options['logger'], LOGGER_METHODS),
    methodsProblem('services', options['services'], ['once', 'complete', 'publish']),
    functionProblem('observer', options['observer']),
    functionProblem('onNoHandler', options['onNoHandler']),
    ...dispatcherProblems(options),
  ]
}

/** What is wrong with handlers and timeout, for a caller that collects the problems of several groups. */
export function dispatcherProblems(options: {
  readonly handlers?: unknown
  readonly middleware?: unknown
  readonly timeoutMs?: unknown
}): string[] {
  const { handlers, middleware, timeoutMs = null } = options
  const hasTime = typeof timeoutMs === 'number' && Number.isFinite(timeoutMs) && timeoutMs > 0
  return [
    ...handlerProblems(handlers),
    functionListProblem('middleware', middleware),
    timeoutMs === null || hasTime
      ? null
      : `timeoutMs must be more than 0, or null for no limit, but is ${shown(timeoutMs)}`,
  ].filter((problem) => problem !== null)
}

function handlerProblems(handlers: unknown): readonly string[] {
  if (!isRecord(handlers)) return ['handlers must be an object of handlers by event name']
  const entries = Object.entries(handlers)
  if (entries.length === 0) return ['there must be at least one handler']
  return entries
    .filter(([, handler]) => typeof handler !== 'function')
    .map(([type, handler]) => `the handler of "${type}" must be a function, but is ${shown(handler)}`)
}

const AS_STORED: EventReader = { read: (event) => event }

const UNAVAILABLE: ContextServices<unknown> = {
  once: () => notAvailable('once'),
  complete: () => notAvailable('complete'),
  publish: () => notAvailable('publish'),
}

function notAvailable(what: string): Promise<never> {
  return Promise.reject(
    new CommitpostError(
      'INVALID_STATE',
      `ctx.${what} is not available here: this dispatcher was made without a store. ` +
        'Run the handler in a worker of an outbox, or pass `services`.',
    ),
  )
}
