import { type Clock, systemClock } from '../runtime/clock.ts'
import { CommitpostError, UnknownOutcomeError } from '../runtime/errors.ts'
import {
  functionProblem,
  methodsProblem,
  oneOfProblem,
  recordProblem,
  refuseProblems,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { isInstance, property } from '../runtime/property.ts'
import { type Random, systemRandom } from '../runtime/random.ts'
import { sqlState } from '../runtime/sql-state.ts'
import type { Transaction } from '../store/transaction.ts'
import { type CommitWith, type TailStatement, TransactionTail } from '../store/transaction-tail.ts'

/** A client taken from a pool: what `pg` hands out fits. */
export interface PooledTransaction extends Transaction {
  /** Gives the client back; with an error or `true` its connection is destroyed instead. */
  release(error?: Error | boolean): void
  on?(event: 'error', listener: (error: Error) => void): unknown
  removeListener?(event: 'error', listener: (error: Error) => void): unknown
}

/** A pool by shape: `pg.Pool` fits. */
export interface TransactionPool {
  connect(): Promise<PooledTransaction>
}

/** The client type of a pool, so that the work gets all of `pg`'s own typing. `pg` declares a callback form too. */
export type ClientOf<Pool extends TransactionPool> = Pool extends {
  connect: { (): Promise<infer Client>; (...args: never[]): unknown }
}
  ? Client
  : PooledTransaction

/** How a transaction is run. */
export interface InTransactionOptions {
  /**
   * The isolation level.
   * @default the database's own
   */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable'
  /**
   * How many times the work is run again after a serialization failure or a deadlock (SQLSTATE 40001, 40P01).
   * @default 3
   */
  readonly retries?: number
  /** Called once the commit has succeeded: to wake a worker of this process, to drop a cache. */
  readonly afterCommit?: () => void | Promise<void>
  readonly clock?: Clock
  readonly random?: Random
}

const BEGIN = {
  default: 'BEGIN',
  'read committed': 'BEGIN ISOLATION LEVEL READ COMMITTED',
  'repeatable read': 'BEGIN ISOLATION LEVEL REPEATABLE READ',
  serializable: 'BEGIN ISOLATION LEVEL SERIALIZABLE',
} as const

const FIRST_WAIT_MS = 20
const LONGEST_WAIT_MS = 1_000

/**
 * Runs the work between BEGIN and COMMIT on one client of the pool, and returns what it returned. Whatever it throws
 * rolls back. After a serialization failure or a deadlock all of it runs again: it must do nothing outside the
 * transaction that may not happen twice.
 *
 * @throws UnknownOutcomeError when the connection broke during COMMIT: it may or may not have happened.
 */
export async function inTransaction<Pool extends TransactionPool, Result>(
  pool: Pool,
  work: (tx: ClientOf<Pool>) => Promise<Result>,
  options: InTransactionOptions = {},
): Promise<Result> {
  return inTransactionThen(pool, work, options, NO_HOOKS)
}

/**
 * Has the client as soon as its transaction is committed. What it begins there is not waited for, but the client goes back
 * to the pool only after it; null where it begins nothing. It must not throw.
 */
export type OnCommitted = (client: PooledTransaction) => Promise<unknown> | null

/** What an outbox adds to a transaction. */
export interface TransactionHooks {
  readonly onCommitted: OnCommitted
  /** The way to send a statement and COMMIT in one round trip on a client; null where it has none. */
  readonly commitWith: (client: PooledTransaction) => CommitWith | null
}

const NO_HOOKS: TransactionHooks = { onCommitted: () => null, commitWith: () => null }

/**
 * Does what `inTransaction` does, and something more on the same client after the commit, whatever becomes of that. What
 * was kept back in the transaction's tail goes with COMMIT.
 */
export async function inTransactionThen<Pool extends TransactionPool, Result>(
  pool: Pool,
  work: (tx: ClientOf<Pool>) => Promise<Result>,
  options: InTransactionOptions,
  hooks: TransactionHooks,
): Promise<Result> {
  const resolved = resolveOptions(pool, work, options)
  // The type of the pool says what its connect gives; TypeScript cannot follow that through the overloads.
  const onAny = work as (tx: PooledTransaction) => Promise<Result>
  const result = await runUntilCommitted(pool, onAny, { ...resolved, hooks })
  await runAfterCommit(options.afterCommit)
  return result
}

async function runUntilCommitted<Result>(
  pool: TransactionPool,
  work: (tx: PooledTransaction) => Promise<Result>,
  { begin, retries, clock, random, hooks }: ResolvedOptions & { readonly hooks: TransactionHooks },
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await runOnce(pool, begin, work, hooks)
    } catch (error) {
      if (attempt > retries || !isTransient(error)) throw error
      // Full jitter: those who collided must not come back together.
      await clock.sleep(random() * Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt))
    }
  }
}

interface ResolvedOptions {
  readonly begin: string
  readonly retries: number
  readonly clock: Clock
  readonly random: Random
}

const MOST_RETRIES = 1_000
const OPTION_NAMES: readonly (keyof InTransactionOptions)[] = [
  'isolation',
  'retries',
  'afterCommit',
  'clock',
  'random',
]

function resolveOptions(pool: unknown, work: unknown, options: InTransactionOptions): ResolvedOptions {
  refuseProblems('inTransaction', [
    typeof property(pool, 'connect') === 'function' ? null : 'pool must be a pool, such as new pg.Pool()',
    functionProblem('work', work ?? null),
    ...optionProblems(options),
  ])
  const { isolation = 'default', retries = 3, clock = systemClock, random = systemRandom } = options
  return { begin: BEGIN[isolation], retries, clock, random }
}

function optionProblems(options: InTransactionOptions): readonly (string | null)[] {
  const problem = recordProblem('the options', options)
  if (problem !== null) return [problem]
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    oneOfProblem('isolation', options.isolation, Object.keys(BEGIN).slice(1)),
    wholeNumberProblem('retries', options.retries, 0, MOST_RETRIES),
    functionProblem('afterCommit', options.afterCommit),
    methodsProblem('clock', options.clock, ['sleep']),
    functionProblem('random', options.random),
  ]
}

async function runOnce<Result>(
  pool: TransactionPool,
  begin: string,
  work: (tx: PooledTransaction) => Promise<Result>,
  hooks: TransactionHooks,
): Promise<Result> {
  const client = await pool.connect()
  // A checked-out pg client whose connection breaks emits 'error', which ends the process if nobody listens. The
  // statement under way, or the next one, fails with the same news.
  const ignore = (): void => undefined
  client.on?.('error', ignore)
  const release = (broken?: Error): void => {
    client.removeListener?.('error', ignore)
    client.release(broken)
  }
  const result = await committed(client, begin, work, hooks).catch(async (error: unknown) => {
    release(await rolledBack(client, error))
    throw error
  })
  const begun = hooks.onCommitted(client)
  if (begun === null) release()
  // The transaction is committed: what fails now is nobody's news, but a broken connection must not be handed out again.
  else
    void begun.then(
      () => release(),
      (error: unknown) => release(isAnswer(error) ? undefined : asError(error)),
    )
  return result
}

async function committed<Result>(
  client: PooledTransaction,
  begin: string,
  work: (tx: PooledTransaction) => Promise<Result>,
  { commitWith }: TransactionHooks,
): Promise<Result> {
  await client.query(begin)
  const send = commitWith(client)
  const tail = send === null ? null : new TransactionTail(client)
  try {
    const result = await work(client)
    const last = (await tail?.end()) ?? null
    await (last === null || send === null ? commit(client) : commitAfter(last, send))
    return result
  } finally {
    tail?.close()
  }
}

async function commit(client: PooledTransaction): Promise<void> {
  const { command } = await client.query('COMMIT').catch(failedCommit)
  refuseRolledBack(command)
}

async function commitAfter(last: TailStatement, send: CommitWith): Promise<void> {
  const { command, refused } = await send(last).catch(failedCommit)
  if (refused !== undefined) throw isAnswer(refused) ? last.explain(refused) : unknownOutcome(refused)
  refuseRolledBack(command)
}

function failedCommit(error: unknown): never {
  throw isAnswer(error) ? error : unknownOutcome(error)
}

function unknownOutcome(cause: unknown): UnknownOutcomeError {
  return new UnknownOutcomeError('the transaction (COMMIT)', [], { cause })
}

function refuseRolledBack(command: string | undefined): void {
  if (command !== 'ROLLBACK') return
  throw new CommitpostError(
    'TRANSACTION_ABORTED',
    'The transaction was rolled back, although no error reached its end: a statement in it had failed, and the error ' +
      'was caught. Nothing was written. Let such errors through, or use a savepoint around what may fail.',
  )
}

/** Rolls back. Returns the error for which the connection must not be used again, if there is one. */
async function rolledBack(client: PooledTransaction, error: unknown): Promise<Error | undefined> {
  if (isInstance(error, UnknownOutcomeError)) return error
  try {
    await client.query('ROLLBACK')
    return undefined
  } catch (rollbackError) {
    // The caller gets the first error; this one only says that the connection is gone.
    return asError(rollbackError)
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

async function runAfterCommit(afterCommit: (() => void | Promise<void>) | undefined): Promise<void> {
  try {
    await afterCommit?.()
  } catch (error) {
    throw new CommitpostError(
      'AFTER_COMMIT_FAILED',
      'The transaction was committed, but the afterCommit hook failed. Do not run the transaction again.',
      { cause: error },
    )
  }
}

const TRANSIENT: ReadonlySet<unknown> = new Set(['40001', '40P01'])
const LONGEST_CAUSE_CHAIN = 5

// The work may have wrapped the driver's error.
function isTransient(error: unknown): boolean {
  if (isInstance(error, UnknownOutcomeError)) return false
  let cause = error
  for (let depth = 0; depth < LONGEST_CAUSE_CHAIN && cause !== undefined && cause !== null; depth += 1) {
    if (TRANSIENT.has(property(cause, 'code'))) return true
    cause = property(cause, 'cause')
  }
  return false
}

// A server that goes away, or fails inside, may have committed before it said so.
const AMBIGUOUS_SQLSTATE = /^(08|57P0|58|XX)/

/** True when the server itself answered that the commit failed: then nothing was committed. */
function isAnswer(error: unknown): boolean {
  const code = sqlState(error)
  return code !== null && !AMBIGUOUS_SQLSTATE.test(code)
}
