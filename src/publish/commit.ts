import { CommitpostError, UnknownOutcomeError } from '../runtime/errors.ts'
import type { Transaction } from '../store/transaction.ts'
import type { CommitWith, TransactionTail } from '../store/transaction-tail.ts'
import { isAnswer } from './transaction-errors.ts'

/** How a transaction ended that was not refused. */
export interface Ended {
  /** False where nothing of it was sent, so that there was nothing to commit. */
  readonly wasSent: boolean
  /** Where workers were told with COMMIT: settles when the client is free for others. */
  readonly telling: Promise<void> | null
}

/** Ends the transaction of this client. @throws UnknownOutcomeError where the connection broke. */
export async function commit(client: Transaction): Promise<Ended> {
  const { command } = await client.query('COMMIT').catch(failedCommit)
  refuseRolledBack(command)
  return { wasSent: true, telling: null }
}

/** What both ends of a transaction need on a client of `pg`. */
export interface TransactionEnds {
  readonly tail: TransactionTail
  readonly send: CommitWith
  /** Asked just before COMMIT is sent: true tells workers in the same write. */
  readonly mayTell: () => boolean
}

/**
 * The same with a BEGIN that was not sent yet, what was kept back in the transaction's tail and, where `mayTell` says so, the
 * word to workers: in one write. Nothing is sent where nothing but BEGIN would be.
 */
export async function commitAtEndOf(
  { tail, send, mayTell }: TransactionEnds,
  client: Transaction,
): Promise<Ended> {
  const rest = await tail.end()
  if (rest === null) return { wasSent: false, telling: null }
  const tells = mayTell()
  if (rest.last === null && !tells) return commit(client)
  const answer = await send({ ...rest, tells }).catch(failedCommit)
  switch (answer.outcome) {
    case 'unsent':
      throw answer.error
    case 'refused':
      throw isAnswer(answer.error) ? rest.last?.explain(answer.error) : unknownOutcome(answer.error)
    case 'answered':
      refuseRolledBack(answer.command)
      return { wasSent: true, telling: answer.telling }
  }
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
