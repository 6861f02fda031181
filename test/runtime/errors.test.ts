import { expect, test } from 'vitest'
import {
  CommitpostError,
  DuplicateEventError,
  HandlerTimeoutError,
  InvalidOptionsError,
  LeaseLostError,
  NonRetryableError,
  NotFoundError,
  NotInTransactionError,
  RetryLaterError,
  SubscriptionConflictError,
  UnknownOutcomeError,
  WorkerStoppingError,
} from '../../src/runtime/errors.ts'
import { NoPartitionError } from '../../src/runtime/no-partition-error.ts'
import { SchemaMissingError, SchemaVersionError } from '../../src/runtime/schema-errors.ts'

const delivery = { eventId: 'e-1', subscription: 'billing' }
const cause = new Error('underneath')

const table: readonly (readonly [CommitpostError, string, readonly string[]])[] = [
  [
    new InvalidOptionsError('worker', ['a is bad', 'b is bad']),
    'INVALID_OPTIONS',
    ['worker', '\n- a is bad\n- b is bad'],
  ],
  [
    new LeaseLostError(delivery),
    'LEASE_LOST',
    ['e-1', '"billing"', 'nothing was written', 'lengthen the lease'],
  ],
  [new NonRetryableError('card refused', { cause }), 'NON_RETRYABLE', ['card refused']],
  [new RetryLaterError('busy', { afterMs: 5, cause }), 'RETRY_LATER', ['busy']],
  [new HandlerTimeoutError(delivery, 500), 'HANDLER_TIMEOUT', ['e-1', '"billing"', '500 ms', 'ctx.signal']],
  [new WorkerStoppingError(), 'WORKER_STOPPING', ['does not count']],
  [new NotInTransactionError('publish'), 'NOT_IN_TRANSACTION', ['publish', 'BEGIN', 'not the pool']],
  [
    new NotInTransactionError('publish', { call: 'outbox.publish(tx)' }),
    'NOT_IN_TRANSACTION',
    ['without a transaction', 'outbox.publish(tx)'],
  ],
  [new DuplicateEventError(['e-1', 'e-2']), 'DUPLICATE_EVENT', ['e-1, e-2']],
  [new NoPartitionError(['e-1']), 'NO_PARTITION', ['event e-1', 'version 7', 'commitpost migrate partition']],
  [
    new UnknownOutcomeError('COMMIT', ['e-1'], { cause }),
    'UNKNOWN_OUTCOME',
    ['COMMIT', 'e-1', 'same event ids'],
  ],
  [
    new SchemaMissingError('shop'),
    'SCHEMA_MISSING',
    ['schema "shop"', 'commitpost migrate up --schema shop', 'migrateUp(pool'],
  ],
  [new SchemaVersionError(2, 3), 'SCHEMA_VERSION', ['version 2', 'version 3', 'commitpost migrate']],
  [new SchemaVersionError(4, 3), 'SCHEMA_VERSION', ['Upgrade the commitpost package']],
  [
    new SubscriptionConflictError('billing', 'order is "none"', {
      registered: "order: 'none'",
      declared: "order: 'total'",
    }),
    'SUBSCRIPTION_CONFLICT',
    ['billing', 'order is "none"'],
  ],
  [new NotFoundError('dead letter', '17'), 'NOT_FOUND', ['no dead letter "17"']],
]

for (const [error, code, words] of table) {
  test(`${error.name} (${code}) says what happened, to what, and what to do`, () => {
    expect(error).toBeInstanceOf(CommitpostError)
    expect(error.code).toBe(code)
    expect(error.name).toBe(error.constructor.name)
    for (const word of words) expect(error.message).toContain(word)
  })
}

test('the cause is kept', () => {
  expect(new NonRetryableError('x', { cause }).cause).toBe(cause)
  expect(new LeaseLostError(delivery, { cause }).cause).toBe(cause)
})

test('a handler can name the code of its failure', () => {
  expect(new NonRetryableError('x', { failureCode: 'CARD_REFUSED' }).failureCode).toBe('CARD_REFUSED')
  expect(new RetryLaterError('x', { afterMs: 0 }).failureCode).toBe('RETRY_LATER')
})

test('a time to retry that is none is refused', () => {
  for (const afterMs of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => new RetryLaterError('x', { afterMs })).toThrow(InvalidOptionsError)
  }
})
