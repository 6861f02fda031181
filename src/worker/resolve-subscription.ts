import { CATCH_ALL, type HandlerMap, type Middleware } from '../dispatch/handler.ts'
import { DEFAULT_HANDLER_TIMEOUT_MS, dispatcherProblems } from '../dispatch/options.ts'
import type { Catalogue } from '../event/catalogue.ts'
import { patternMatcher } from '../event/pattern.ts'
import type { ErrorClassifier } from '../settle/classify.ts'
import {
  type RetryOptions,
  type RetryPolicy,
  resolveRetryPolicy,
  retryProblems,
} from '../settle/retry-policy.ts'
import type { OrderBy, StartFrom, SubscriptionDefinition } from '../store/subscription-store.ts'
import {
  oneOfProblem,
  patternListProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from './option-checks.ts'
import type { Subscription, SubscriptionOptions } from './subscription.ts'

/** A subscription with every default filled in. */
export interface ResolvedSubscription {
  /** What the database is told. */
  readonly definition: SubscriptionDefinition
  readonly handlers: HandlerMap
  readonly middleware: readonly Middleware[]
  readonly retry: RetryPolicy
  readonly classify: ErrorClassifier | undefined
  readonly timeoutMs: number | null
  readonly concurrency: number
  readonly batchSize: number
  readonly pollMs: number
  readonly pollMinMs: number
  readonly drain: boolean
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const MOST_LANES = 64
const MOST_AT_ONCE = 10_000
const LONGEST_POLL_MS = 86_400_000
const DEFAULT_LANES = 16

type AnyOptions = SubscriptionOptions<Catalogue, unknown>

/** What is wrong with a subscription, all of it. */
export function subscriptionProblems(
  catalogue: Catalogue,
  { name, options }: Subscription<Catalogue, unknown>,
): readonly string[] {
  const handlers: unknown = options?.on
  if (typeof handlers !== 'object' || handlers === null)
    return ['on must be an object of handlers by event name']
  return [
    ...(NAME.test(name) ? [] : ['the name must be 1 to 100 letters, digits, dots, dashes or underscores']),
    ...dispatcherProblems({ ...options, handlers: options.on as HandlerMap }),
    ...retryProblems(retryOptions(options)),
    ...unknownOptionProblems(options, OPTION_NAMES),
    ...numberProblems(options),
    ...orderProblems(options),
    ...coverageProblems(catalogue, options),
  ]
}

/** Fills in the defaults. The caller has seen to it that there are no problems. */
export function resolveSubscription(
  catalogue: Catalogue,
  { name, options }: Subscription<Catalogue, unknown>,
): ResolvedSubscription {
  const policy = resolveRetryPolicy(retryOptions(options))
  const batchSize = options.batchSize ?? 500
  const pollMs = options.pollMs ?? 1_000
  return {
    definition: {
      name,
      streams: options.streams ?? null,
      eventTypes: eventTypesOf(catalogue, options),
      ...orderOf(options),
      onDead: options.onDead ?? 'block',
      maxAttempts: policy.maxAttempts,
      startFrom: options.startFrom ?? 'now',
    },
    handlers: options.on as HandlerMap,
    middleware: options.middleware ?? [],
    retry: policy,
    classify: options.classify,
    timeoutMs: options.timeoutMs === undefined ? DEFAULT_HANDLER_TIMEOUT_MS : options.timeoutMs,
    concurrency: concurrencyOf(options),
    batchSize,
    pollMs,
    pollMinMs: Math.min(options.pollMinMs ?? 20, pollMs),
    drain: options.drain ?? true,
  }
}

function retryOptions({ retry, maxAttempts }: AnyOptions): RetryOptions {
  return {
    ...(retry === undefined ? {} : { backoff: retry }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
  }
}

function concurrencyOf(options: AnyOptions): number {
  return options.oneAtATime === true ? 1 : (options.concurrency ?? 10)
}

function orderOf(options: AnyOptions): { readonly orderBy: OrderBy; readonly lanes: number } {
  const orderBy = options.order ?? (options.oneAtATime === true ? 'aggregate' : 'none')
  if (orderBy === 'none') return { orderBy, lanes: 0 }
  if (orderBy === 'total' || options.oneAtATime === true) return { orderBy, lanes: 1 }
  return { orderBy, lanes: options.lanes ?? DEFAULT_LANES }
}

/** By the handlers, unless streams say what arrives or there is a handler for everything. */
function eventTypesOf(catalogue: Catalogue, options: AnyOptions): readonly string[] | null {
  if (options.streams !== undefined || Object.hasOwn(options.on, CATCH_ALL)) return null
  return Object.keys(options.on).map((name) => catalogue.find(name)?.storedAs ?? name)
}

const OPTION_NAMES: readonly (keyof AnyOptions)[] = [
  'on',
  'streams',
  'startFrom',
  'order',
  'onDead',
  'oneAtATime',
  'lanes',
  'maxAttempts',
  'retry',
  'classify',
  'timeoutMs',
  'concurrency',
  'batchSize',
  'pollMs',
  'pollMinMs',
  'drain',
  'middleware',
]

function numberProblems(options: AnyOptions): string[] {
  return [
    wholeNumberProblem('concurrency', options.concurrency, 1, MOST_AT_ONCE),
    wholeNumberProblem('batchSize', options.batchSize, 1, MOST_AT_ONCE),
    wholeNumberProblem('pollMs', options.pollMs, 1, LONGEST_POLL_MS),
    wholeNumberProblem('pollMinMs', options.pollMinMs, 1, LONGEST_POLL_MS),
    wholeNumberProblem('lanes', options.lanes, 1, MOST_LANES),
  ].filter((problem) => problem !== null)
}

function orderProblems(options: AnyOptions): string[] {
  return [
    oneOfProblem('order', options.order, ['none', 'aggregate', 'total']),
    oneOfProblem('onDead', options.onDead, ['block', 'continue']),
    patternListProblem('streams', options.streams),
    startFromProblem(options.startFrom),
    ...contradictions(options),
  ].filter((problem) => problem !== null)
}

/** Options that are fine by themselves but not together. */
function contradictions(options: AnyOptions): string[] {
  const { order = 'none', lanes, oneAtATime = false, concurrency = 1, onDead } = options
  const isUnordered = order === 'none' && !oneAtATime
  const splits = lanes !== undefined && lanes !== 1
  const rules: readonly (readonly [boolean, string])[] = [
    [oneAtATime && options.order === 'none', "oneAtATime needs an order: leave it out, or 'aggregate'"],
    [oneAtATime && splits, 'oneAtATime means lanes 1: leave lanes out'],
    [oneAtATime && concurrency !== 1, 'oneAtATime means concurrency 1: leave it out'],
    [isUnordered && lanes !== undefined, "lanes are for ordered subscriptions: add order 'aggregate'"],
    [isUnordered && onDead !== undefined, "onDead is for ordered subscriptions: add order 'aggregate'"],
    [order === 'total' && splits, "order 'total' means lanes 1: leave lanes out"],
  ]
  return rules.filter(([isBroken]) => isBroken).map(([, problem]) => problem)
}

function startFromProblem(startFrom: StartFrom | undefined): string | null {
  if (startFrom === undefined || startFrom === 'now' || startFrom === 'beginning') return null
  const isDate = startFrom instanceof Date && !Number.isNaN(startFrom.getTime())
  return isDate ? null : "startFrom must be 'now', 'beginning' or a valid Date"
}

/** Handlers for events that do not exist, and events of the given streams that have none. */
function coverageProblems(catalogue: Catalogue, options: AnyOptions): string[] {
  const names = Object.keys(options.on).filter((name) => name !== CATCH_ALL)
  const unknown = names
    .filter((name) => catalogue.find(name) === undefined)
    .map((name) => `there is a handler for "${name}", which is not in the catalogue`)
  if (Object.hasOwn(options.on, CATCH_ALL) || patternListProblem('streams', options.streams) !== null)
    return unknown
  const matchers = (options.streams ?? []).map(patternMatcher)
  const missing = catalogue.events
    .filter(({ name, stream }) => matchers.some((matches) => matches(stream)) && !names.includes(name))
    .map(({ name }) => name)
  if (missing.length === 0) return unknown
  return [
    ...unknown,
    `streams bring events without a handler: ${missing.join(', ')}. Add them, or '*' for all others`,
  ]
}
