import type { CommitpostErrorCode } from './error-codes.ts'
import { property, textProperty } from './property.ts'

/** The root of all errors this library throws. `code` says which, `cause` keeps what was underneath. */
export class CommitpostError extends Error {
  readonly code: CommitpostErrorCode

  constructor(code: CommitpostErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** Options that cannot work. Lists every problem at once, so that one run is enough to fix them all. */
export class InvalidOptionsError extends CommitpostError {
  /** Whose options are wrong: `the worker`, `subscription "billing"`. */
  readonly what: string
  readonly problems: readonly string[]

  constructor(what: string, problems: readonly string[]) {
    super(
      'INVALID_OPTIONS',
      `Invalid options for ${what}:\n${problems.map((text) => `- ${text}`).join('\n')}`,
    )
    this.what = what
    this.problems = problems
  }
}

/** Which delivery an error is about. */
export interface DeliveryReference {
  readonly eventId: string
  readonly subscription: string
}

/** This worker's lease ran out and somebody else may hold the delivery: nothing was written for it. */
export class LeaseLostError extends CommitpostError {
  readonly eventId: string
  readonly subscription: string

  constructor(delivery: DeliveryReference, options?: ErrorOptions) {
    super(
      'LEASE_LOST',
      `The lease on event ${delivery.eventId} for subscription "${delivery.subscription}" was lost: ` +
        'nothing was written, and another worker will run or has run this delivery. ' +
        'If this repeats, lengthen the lease or keep the handler from blocking the event loop.',
      options,
    )
    this.eventId = delivery.eventId
    this.subscription = delivery.subscription
  }
}

/** An event may not be completed yet, because what was done before it on its key is not written down. */
export class OutOfTurnError extends CommitpostError {
  constructor({ eventId }: { readonly eventId: string }) {
    super(
      'RETRY_LATER',
      `Event ${eventId} cannot be completed before an earlier event of its ordering key, whose result is not written yet: ` +
        'somebody has its row in outbox_delivery locked, or a trigger refuses it. Roll the transaction back. The event is ' +
        'delivered again after that one, and this attempt does not count.',
    )
  }
}

/** The worker stops and will not wait any longer: the delivery goes back, its attempt unspent. */
export class WorkerStoppingError extends CommitpostError {
  constructor(options?: ErrorOptions) {
    super(
      'WORKER_STOPPING',
      'The worker is stopping and this handler took longer than it may wait. The event will be delivered again, ' +
        'and this attempt does not count.',
      options,
    )
  }
}

/** What a handler may add to the errors it throws on purpose. */
export interface HandlerErrorOptions extends ErrorOptions {
  /**
   * The code stored with the failure, for alerts and for choosing dead letters: "CARD_REFUSED".
   * @default the error's own code
   */
  readonly failureCode?: string
}

/** Thrown by a handler: trying again cannot help, so the delivery becomes a dead letter at once. */
export class NonRetryableError extends CommitpostError {
  readonly failureCode: string

  constructor(message: string, options: HandlerErrorOptions = {}) {
    super('NON_RETRYABLE', message, options)
    this.failureCode = textProperty(options, 'failureCode') ?? 'NON_RETRYABLE'
  }
}

/** Thrown by a handler: try again, but not before `afterMs`. The attempt counts. */
export class RetryLaterError extends CommitpostError {
  readonly failureCode: string
  /** In milliseconds, never negative. */
  readonly afterMs: number

  constructor(message: string, options: HandlerErrorOptions & { readonly afterMs: number }) {
    super('RETRY_LATER', message, options)
    const afterMs = property(options, 'afterMs')
    if (typeof afterMs !== 'number' || !Number.isFinite(afterMs) || afterMs < 0) {
      throw new InvalidOptionsError('RetryLaterError', [
        `afterMs must be a number of milliseconds, 0 or more, but is ${String(afterMs)}`,
      ])
    }
    this.afterMs = afterMs
    this.failureCode = textProperty(options, 'failureCode') ?? 'RETRY_LATER'
  }
}

/** A handler did not finish in time. Its `ctx.signal` was aborted; what it does afterwards is ignored. */
export class HandlerTimeoutError extends CommitpostError {
  readonly eventId: string
  readonly subscription: string
  readonly timeoutMs: number

  constructor(delivery: DeliveryReference, timeoutMs: number) {
    super(
      'HANDLER_TIMEOUT',
      `The handler of subscription "${delivery.subscription}" did not finish event ${delivery.eventId} ` +
        `within ${timeoutMs} ms. Pass ctx.signal to what it waits for, or raise the subscription's timeout.`,
    )
    this.eventId = delivery.eventId
    this.subscription = delivery.subscription
    this.timeoutMs = timeoutMs
  }
}

/** Something the library waited for (a statement, a connection, a broker) did not answer in time. */
export class DeadlineExceededError extends CommitpostError {
  readonly timeoutMs: number

  constructor(what: string, timeoutMs: number) {
    super(
      'DEADLINE_EXCEEDED',
      `${what} gave no answer within ${timeoutMs} ms. It may still have happened: check before doing it again.`,
    )
    this.timeoutMs = timeoutMs
  }
}

/** What more is known of a call outside a transaction. */
export interface NotInTransactionOptions extends ErrorOptions {
  /**
   * How the call should look, where its first argument is nothing that could be a transaction: it was left out.
   * @default unknown: there is a client, but no transaction on it
   */
  readonly call?: string
  /**
   * True where what was given has no `query` that could be called, as the handles of other clients.
   * @default false
   */
  readonly cannotQuery?: boolean
}

/** An operation that must be atomic with the caller's rows was called outside a transaction. */
export class NotInTransactionError extends CommitpostError {
  constructor(
    operation = 'publish',
    { call, cannotQuery = false, ...options }: NotInTransactionOptions = {},
  ) {
    super('NOT_IN_TRANSACTION', `${operation} ${transactionAdvice(call, cannotQuery)}`, options)
  }
}

function transactionAdvice(call: string | undefined, cannotQuery: boolean): string {
  if (call !== undefined) {
    return (
      'was called without a transaction, so nothing was written. The first argument is the client ' +
      `that your transaction runs on: outbox.inTransaction(pool, async (tx) => { await ${call} })`
    )
  }
  if (cannotQuery) {
    return (
      'was given something without query(text, params), so nothing was written. Pass the pg client that your transaction ' +
      'runs on. The handles of Drizzle, Knex, Kysely, postgres.js and others need a few lines around them: { query: async ' +
      '(text, params) => … }, as in docs/orms.md.'
    )
  }
  return (
    'was called outside a transaction, so nothing was written. ' +
    'Open a transaction (BEGIN) on the client you pass, and pass that client, not the pool.'
  )
}

/**
 * Events with these ids are in the outbox already. Nothing of the statement was written. Where the database cannot tell
 * which of a batch it was, all of them are named.
 */
export class DuplicateEventError extends CommitpostError {
  readonly eventIds: readonly string[]

  constructor(eventIds: readonly string[], details: ErrorOptions & { readonly archived?: boolean } = {}) {
    const { archived = false, ...options } = details
    const which = eventIds.length === 1 ? 'event' : 'at least one of the events'
    super(
      'DUPLICATE_EVENT',
      `Already published${archived ? ', and archived since' : ''}: ${which} ${eventIds.join(', ')}. Nothing was ` +
        'written, and the transaction has failed: roll it back. If this is a retry of the same publish, it had ' +
        'succeeded; otherwise give each event an id of its own' +
        (archived
          ? ': one that was archived is never taken again.'
          : ", or publish with onDuplicate: 'ignore'."),
      options,
    )
    this.eventIds = eventIds
  }
}

/** The connection broke while a commit was under way: it may or may not have happened. */
export class UnknownOutcomeError extends CommitpostError {
  readonly eventIds: readonly string[]

  constructor(operation: string, eventIds: readonly string[] = [], options?: ErrorOptions) {
    const which = eventIds.length === 0 ? '' : ` for event ${eventIds.join(', ')}`
    super(
      'UNKNOWN_OUTCOME',
      `The outcome of ${operation}${which} is unknown: the connection broke before the database answered. ` +
        'Run it again with the same event ids: if it had succeeded, the retry is refused as a duplicate.',
      options,
    )
    this.eventIds = eventIds
  }
}

/** What a subscription is and what the code wants it to be, in the words of its options. */
export interface ConflictingSettings {
  readonly registered: string
  readonly declared: string
}

/** A subscription is registered under this name with settings that cannot be changed while it lives. */
export class SubscriptionConflictError extends CommitpostError {
  readonly subscription: string
  readonly settings: ConflictingSettings

  constructor(
    subscription: string,
    difference: string,
    settings: ConflictingSettings,
    options?: ErrorOptions,
  ) {
    super(
      'SUBSCRIPTION_CONFLICT',
      `Subscription "${subscription}" is registered with other settings: ${difference}. ` +
        'Keep the old settings, or give the new ones a new name.',
      options,
    )
    this.subscription = subscription
    this.settings = settings
  }
}

/** What else a `NotFoundError` may say. */
export interface NotFoundDetails extends ErrorOptions {
  /** @default one that names what was asked for */
  readonly message?: string
  /** What there is instead, where that is known. */
  readonly known?: readonly string[]
}

/** What was asked for does not exist. */
export class NotFoundError extends CommitpostError {
  readonly what:
    | 'dead letter'
    | 'delivery'
    | 'export'
    | 'matching dead letter'
    | 'named dead letter'
    | 'plan'
    | 'retention policy'
    | 'retention run'
    | 'stream'
    | 'subscription'
  /** Empty where nothing was named: nothing matches. Several have commas between. */
  readonly id: string
  readonly known: readonly string[]

  constructor(what: NotFoundError['what'], id: string, details: NotFoundDetails = {}) {
    const { message, known = [], ...options } = details
    const usual = `There is no ${what} "${id}". It may be mistyped, or not in this database and schema.`
    super('NOT_FOUND', message ?? usual, options)
    this.what = what
    this.id = id
    this.known = known
  }
}
