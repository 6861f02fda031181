import type { PoolClient } from 'pg'
import { z } from 'zod'
import type { Transaction } from '../../src/index.ts'
import { defineEvents, type EventBus, fixed } from '../../src/index.ts'
import { openSystem, type System } from './support.ts'

const posted = z.object({
  transactionId: z.string(),
  accountId: z.string(),
  amount: z.number(),
  balanceAfter: z.number(),
})

/** The catalogue of the ADR: named in code as its classes, stored as its enum; order follows the account. */
export const ledgerEvents = defineEvents({
  LedgerPosted: {
    stream: 'ledger-events',
    aggregate: 'TRANSACTION',
    storedAs: 'LEDGER_POSTED',
    schema: posted,
    orderingKey: ({ accountId }) => accountId,
    sequence: true,
  },
  LedgerReversed: {
    stream: 'ledger-events',
    aggregate: 'TRANSACTION',
    storedAs: 'LEDGER_REVERSED',
    schema: posted.extend({ reversedTransactionId: z.string() }),
    orderingKey: ({ accountId }) => accountId,
    sequence: true,
  },
})

export type LedgerEvents = typeof ledgerEvents
export type Ledger = System<LedgerEvents>

const TABLES = `
  create table account_balance (account_id text primary key, amount numeric not null, version bigint not null);
  create table ledger_transaction (id text primary key, account_id text not null, amount numeric not null);
  create table journal_entry (
    transaction_id text not null references ledger_transaction (id), side text not null, amount numeric not null,
    primary key (transaction_id, side));
  create table balance_view (account_id text primary key, amount numeric not null default 0, last_sequence bigint not null default 0);
  create table processed_event (transaction_id text primary key);`

export async function openLedger(accounts: readonly string[] = ['acc-1']): Promise<Ledger> {
  const ledger = await openSystem(ledgerEvents, { tables: TABLES })
  for (const account of accounts) {
    await ledger.pool.query('insert into account_balance values ($1, 0, 0)', [account])
    await ledger.pool.query('insert into balance_view (account_id) values ($1)', [account])
  }
  return ledger
}

/** The poller of the ADR: every 2 s a batch of 100, and 5 retries 2 s apart, which is 10 s as the ADR adds up. */
export const POLLER = {
  pollMs: 2_000,
  batchSize: 100,
  drain: false,
  retry: fixed('2s'),
  maxAttempts: 6,
} as const

/** What the domain knows of events. */
export interface LedgerPostedEvent {
  readonly transactionId: string
  readonly accountId: string
  readonly amount: number
  readonly balanceAfter: number
}

/** The port of the application: how an event is recorded is the adapter's business. */
export interface OutboxEventRecorder {
  recordPosted(event: LedgerPostedEvent): Promise<void>
  recordReversed(event: LedgerPostedEvent & { readonly reversedTransactionId: string }): Promise<void>
}

/** The adapter: records in the transaction it was made for. */
export function outboxRecorder(
  bus: EventBus<LedgerEvents, Transaction>,
  tx: Transaction,
): OutboxEventRecorder {
  return {
    recordPosted: async (event) =>
      void (await bus.publish(tx, 'LedgerPosted', { aggregateId: event.transactionId, payload: event })),
    recordReversed: async (event) =>
      void (await bus.publish(tx, 'LedgerReversed', { aggregateId: event.transactionId, payload: event })),
  }
}

export interface DepositCommand {
  readonly transactionId: string
  readonly accountId: string
  readonly amount: number
}

/** Somebody else changed the balance between reading and writing it. */
export class OptimisticLockError extends Error {}

export type DepositStep = 'transaction' | 'journal' | 'balance' | 'event'

/** The deposit service: four writes, one transaction. `after` runs between the steps. */
export async function deposit(
  tx: PoolClient,
  recorder: OutboxEventRecorder,
  command: DepositCommand,
  after: (step: DepositStep | 'read') => Promise<void> | void = () => {},
): Promise<void> {
  const { transactionId, accountId, amount } = command
  const { rows } = await tx.query<{ amount: string; version: string }>(
    'select amount, version from account_balance where account_id = $1',
    [accountId],
  )
  const balanceAfter = Number(rows[0]?.amount ?? 0) + amount
  await after('read')
  await tx.query('insert into ledger_transaction values ($1, $2, $3)', [transactionId, accountId, amount])
  await after('transaction')
  await tx.query(`insert into journal_entry values ($1, 'DEBIT', $2), ($1, 'CREDIT', $2)`, [
    transactionId,
    amount,
  ])
  await after('journal')
  // The event is recorded before the lock is checked: a lost race must take it back too.
  await recorder.recordPosted({ transactionId, accountId, amount, balanceAfter })
  await after('event')
  const { rowCount } = await tx.query(
    'update account_balance set amount = $2, version = version + 1 where account_id = $1 and version = $3',
    [accountId, balanceAfter, rows[0]?.version],
  )
  if (rowCount === 0) throw new OptimisticLockError(`account ${accountId} was changed meanwhile`)
  await after('balance')
}

/** One deposit in a transaction of its own. */
export function runDeposit(
  ledger: Ledger,
  command: DepositCommand,
  after?: (step: DepositStep | 'read') => Promise<void> | void,
): Promise<void> {
  const { outbox, pool } = ledger
  return outbox.inTransaction(pool, (tx) => deposit(tx, outboxRecorder(outbox, tx), command, after))
}
