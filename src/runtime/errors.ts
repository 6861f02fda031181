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
  readonly problems: readonly string[]

  /** `what` names the thing whose options are wrong: "worker", "subscription \"billing\"". */
  constructor(what: string, problems: readonly string[]) {
    super(
      'INVALID_OPTIONS',
      `Invalid options for ${what}:\n${problems.map((text) => `- ${text}`).join('\n')}`,
    )
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
}

/** An operation that must be atomic with the caller's rows was called outside a transaction. */
export class NotInTransactionError extends CommitpostError {
  constructor(operation = 'publish', { call, ...options }: NotInTransactionOptions = {}) {
    const advice =
      call === undefined
        ? `${operation} was called outside a transaction, so nothing was written. ` +
          'Open a transaction (BEGIN) on the client you pass, and pass that client, not the pool.'
        : `${operation} was called without a transaction, so nothing was written. The first argument is the client ` +
          `that your transaction runs on: outbox.inTransaction(pool, async (tx) => { await ${call} })`
    super('NOT_IN_TRANSACTION', advice, options)
  }
}

/**
 * Events with these ids are in the outbox already. Nothing of the statement was written. Where the database cannot tell
 * which of a batch it was, all of them are named.
 */
export class DuplicateEventError extends CommitpostError {
  readonly eventIds: readonly string[]

  constructor(eventIds: readonly string[], options?: ErrorOptions) {
    const which = eventIds.length === 1 ? 'event' : 'at least one of the events'
    super(
      'DUPLICATE_EVENT',
      `Already published: ${which} ${eventIds.join(', ')}. Nothing was written, and the transaction has failed: roll ` +
        'it back. If this is a retry of the same publish, it had succeeded; otherwise give each event an id of its ' +
        "own, or publish with onDuplicate: 'ignore'.",
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

/** Commitpost's tables are not where this process looks for them. Nothing was read or written. */
export class SchemaMissingError extends CommitpostError {
  readonly schema: string

  /** `schema` is its plain name, without quotes. */
  constructor(schema: string, options?: ErrorOptions) {
    super(
      'SCHEMA_MISSING',
      `There are no Commitpost tables in schema "${schema}". Create them with \`commitpost migrate up --schema ` +
        `${schema}\` or migrateUp(pool, { schema: '${schema}' }), or name the schema they are in.`,
      options,
    )
    this.schema = schema
  }
}

/** The tables are of another version than this code can work with. */
export class SchemaVersionError extends CommitpostError {
  readonly found: number
  readonly needed: number

  constructor(found: number, needed: number, options?: ErrorOptions) {
    const advice =
      found > needed
        ? 'Upgrade the commitpost package of this process.'
        : 'Run `commitpost migrate up` with a role that owns the schema.'
    super(
      'SCHEMA_VERSION',
      `The database has Commitpost schema version ${found}, and this process needs version ${needed}. ${advice}`,
      options,
    )
    this.found = found
    this.needed = needed
  }
}

/** A subscription is registered under this name with settings that cannot be changed while it lives. */
export class SubscriptionConflictError extends CommitpostError {
  readonly subscription: string

  constructor(subscription: string, difference: string, options?: ErrorOptions) {
    super(
      'SUBSCRIPTION_CONFLICT',
      `Subscription "${subscription}" is registered with other settings: ${difference}. ` +
        'Keep the old settings, or give the new ones a new name.',
      options,
    )
    this.subscription = subscription
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
    | 'export'
    | 'matching dead letter'
    | 'plan'
    | 'retention policy'
    | 'stream'
    | 'subscription'
  /** Empty where nothing was named: nothing matches. */
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
