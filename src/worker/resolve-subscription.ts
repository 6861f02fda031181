import { CATCH_ALL, type HandlerMap } from '../dispatch/handler.ts'
import { DEFAULT_HANDLER_TIMEOUT_MS } from '../dispatch/options.ts'
import type { Transport } from '../dispatch/transport.ts'
import { wrapHandlers } from '../dispatch/wrap-handlers.ts'
import type { Catalogue } from '../event/catalogue.ts'
import type { ErrorClassifier } from '../settle/classify.ts'
import { type RetryOptions, type RetryPolicy, resolveRetryPolicy } from '../settle/retry-policy.ts'
import type { PolicyRedrive } from '../store/redrive-store.ts'
import type { OrderBy, SubscriptionDefinition } from '../store/subscription-store.ts'
import { resolveRedrivePolicy } from './redrive-policy.ts'
import type { Relay, Subscription } from './subscription.ts'
import type { RelayOptions, SubscriptionOptions } from './subscription-options.ts'

/** A subscription with every default filled in. */
export interface ResolvedSubscription {
  /** What the database is told. */
  readonly definition: SubscriptionDefinition
  readonly handlers: HandlerMap
  /** Where events go in place of handlers; null where there are handlers. */
  readonly via: Transport | null
  readonly retry: RetryPolicy
  readonly classify: ErrorClassifier | undefined
  /** Null: every dead letter waits for a person. */
  readonly redrive: PolicyRedrive | null
  readonly timeoutMs: number | null
  readonly concurrency: number
  readonly batchSize: number
  readonly pollMs: number
  readonly pollMinMs: number
  readonly drain: boolean
  readonly walBudgetBytes: number
}

const DEFAULT_LANES = 16
const DEFAULT_WAL_BUDGET_BYTES = 4 * 1_024 ** 3

type AnyOptions = SubscriptionOptions<Catalogue, unknown> | RelayOptions

/** Fills in the defaults. The caller has seen to it that there are no problems. */
export function resolveSubscription(
  catalogue: Catalogue,
  { name, options }: Subscription<Catalogue, unknown> | Relay,
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
      engine: options.engine ?? 'queue',
    },
    // Here and not when the worker starts: what returns no handler is refused before anything is registered.
    ...destinationOf(options),
    retry: policy,
    redrive: resolveRedrivePolicy(options.redrive),
    concurrency: concurrencyOf(options, batchSize),
    batchSize,
    pollMs,
    pollMinMs: Math.min(options.pollMinMs ?? 20, pollMs),
    drain: options.drain ?? true,
    walBudgetBytes: options.walBudgetBytes ?? DEFAULT_WAL_BUDGET_BYTES,
  }
}

type Destination = Pick<ResolvedSubscription, 'handlers' | 'via' | 'classify' | 'timeoutMs'>

function destinationOf(options: AnyOptions): Destination {
  if (isRelay(options)) return { via: options.via, handlers: {}, classify: undefined, timeoutMs: null }
  return {
    via: null,
    handlers: wrapHandlers(options.on as HandlerMap, options.middleware ?? []),
    classify: options.classify,
    timeoutMs: options.timeoutMs === undefined ? DEFAULT_HANDLER_TIMEOUT_MS : options.timeoutMs,
  }
}

function isRelay(options: AnyOptions): options is RelayOptions {
  return 'via' in options
}

function retryOptions({ retry, maxAttempts }: AnyOptions): RetryOptions {
  return {
    ...(retry === undefined ? {} : { backoff: retry }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
  }
}

function concurrencyOf(options: AnyOptions, batchSize: number): number {
  if (options.oneAtATime === true) return 1
  return isRelay(options) ? batchSize : (options.concurrency ?? 10)
}

function orderOf(options: AnyOptions): { readonly orderBy: OrderBy; readonly lanes: number } {
  const orderBy = options.order ?? (options.oneAtATime === true ? 'aggregate' : 'none')
  if (orderBy === 'none') return { orderBy, lanes: 0 }
  if (orderBy === 'total' || options.oneAtATime === true) return { orderBy, lanes: 1 }
  return { orderBy, lanes: options.lanes ?? DEFAULT_LANES }
}

/** By the handlers, unless streams say what arrives or there is a handler for everything. */
function eventTypesOf(catalogue: Catalogue, options: AnyOptions): readonly string[] | null {
  if (isRelay(options) || options.streams !== undefined || Object.hasOwn(options.on, CATCH_ALL)) return null
  return Object.keys(options.on).map((name) => catalogue.find(name)?.storedAs ?? name)
}
