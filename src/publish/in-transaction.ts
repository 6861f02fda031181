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
import { isPoolOfClients } from '../runtime/pool-shape.ts'
import { isInstance } from '../runtime/property.ts'
import { type Random, systemRandom } from '../runtime/random.ts'
import { surviveLoss } from '../runtime/survive-loss.ts'
import type { BeginWith } from '../store/deferred-begin.ts'
import type { Transaction } from '../store/transaction.ts'
import { type CommitWith, openTail } from '../store/transaction-tail.ts'
import { commit, commitAtEndOf, type Ended, type TransactionEnds } from './commit.ts'
import { isAnswer, isTransient } from './transaction-errors.ts'

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
 * Has the client as soon as its transaction is committed, and what is under way on it already: workers are being told. What
 * it begins there is not waited for, but the client goes back to the pool only after it; null where it begins nothing. It
 * must not throw.
 */
export type OnCommitted = (
  client: PooledTransaction,
  telling: Promise<unknown> | null,
) => Promise<unknown> | null

/** What an outbox adds to a transaction. */
export interface TransactionHooks {
  readonly onCommitted: OnCommitted
  /** The way to send something in one write with COMMIT on a client; null where it has none. */
  readonly commitWith: (client: PooledTransaction) => CommitWith | null
  /** The way to send BEGIN and a statement in one write on a client; null where it has none. */
  readonly beginWith: (client: PooledTransaction) => BeginWith | null
  /** Asked just before COMMIT is sent: true tells workers in the same write. */
  readonly mayTell: () => boolean
}

const NO_HOOKS: TransactionHooks = {
  onCommitted: () => null,
  commitWith: () => null,
  beginWith: () => null,
  mayTell: () => false,
}

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
    isPoolOfClients(pool) ? null : 'pool must be a pool, such as new pg.Pool(), and not one client of it',
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
  const stopListening = surviveLoss(client)
  const release = (broken?: Error): void => {
    stopListening()
    client.release(broken)
  }
  const ends = endsOf(client, begin, hooks)
  const done = await committed(client, begin, work, ends).catch(async (error: unknown) => {
    const hasBegun = ends === null || (await ends.tail.abandon())
    release(hasBegun ? await rolledBack(client, error) : undefined)
    throw error
  })
  const begun = done.wasSent ? hooks.onCommitted(client, done.telling) : null
  if (begun === null) release()
  // The transaction is committed: what fails now is nobody's news, but a broken connection must not be handed out again.
  else
    void begun.then(
      () => release(),
      (error: unknown) => release(isAnswer(error) ? undefined : asError(error)),
    )
  return done.result
}

/** Null where both ends are to be sent as statements of their own. */
function endsOf(client: PooledTransaction, begin: string, hooks: TransactionHooks): TransactionEnds | null {
  const send = hooks.commitWith(client)
  if (send === null) return null
  const tail = openTail(client, { text: begin, beginWith: hooks.beginWith(client) })
  return tail === null ? null : { tail, send, mayTell: hooks.mayTell }
}

async function committed<Result>(
  client: PooledTransaction,
  begin: string,
  work: (tx: PooledTransaction) => Promise<Result>,
  ends: TransactionEnds | null,
): Promise<{ readonly result: Result } & Ended> {
  try {
    if (ends === null) await client.query(begin)
    const result = await work(client)
    const { wasSent, telling } = await (ends === null ? commit(client) : commitAtEndOf(ends, client))
    return { result, wasSent, telling }
  } finally {
    ends?.tail.close()
  }
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
