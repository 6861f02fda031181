import { describe, expect, test } from 'vitest'
import {
  defineEvents,
  NonRetryableError,
  type OutboxEvent,
  subscription,
  unchecked,
} from '../../src/index.ts'
import { type DepositCommand, type Ledger, openLedger } from './ledger-system.ts'
import { deliveredTimes, eventually, openSystem, recordingLogger, SHARING } from './support.ts'

/** Moves money under the lock of the account and tells of it, as one of many processes. */
function post(
  ledger: Ledger,
  { transactionId, accountId, amount }: DepositCommand,
  fails = false,
): Promise<void> {
  const { outbox, pool } = ledger
  return outbox.inTransaction(pool, async (tx) => {
    const { rows } = await tx.query<{ amount: string }>(
      'update account_balance set amount = amount + $2 where account_id = $1 returning amount',
      [accountId, amount],
    )
    const payload = { transactionId, accountId, amount, balanceAfter: Number(rows[0]?.amount) }
    await outbox.publish(tx, 'LedgerPosted', { aggregateId: transactionId, payload })
    if (fails) throw new Error('rolled back')
  })
}

/** The read model: applies postings in the sequence of their account and refuses anything else. */
async function applyInSequence(
  ledger: Ledger,
  event: OutboxEvent<string, { accountId: string; amount: number }>,
): Promise<void> {
  const { rowCount } = await ledger.pool.query(
    `update balance_view set amount = amount + $2, last_sequence = $3
      where account_id = $1 and last_sequence = $3 - 1`,
    [event.payload.accountId, event.payload.amount, event.sequence],
  )
  if (rowCount === 0) throw new NonRetryableError(`sequence ${event.sequence} is out of turn`)
}

describe('order in the ledger', () => {
  test('L9 order and sequence follow the account, and a consumer can verify it', async () => {
    const accounts = ['acc-1', 'acc-2', 'acc-3']
    await using ledger = await openLedger(accounts)
    const readModel = () =>
      ledger.outbox.subscription('read-model', {
        order: 'aggregate',
        on: { LedgerPosted: (event) => applyInSequence(ledger, event) },
      })
    await ledger.runElsewhere([readModel()], SHARING)
    await ledger.runElsewhere([readModel()], SHARING)
    await ledger.untilLanesAreShared(2)
    // Many transactions of few accounts at once; every fifth is rolled back and must not leave a gap.
    const postings = Array.from({ length: 90 }, (_, n) =>
      post(
        ledger,
        { transactionId: `tx-${n}`, accountId: accounts[n % 3] as string, amount: n % 2 === 0 ? 100 : -50 },
        n % 5 === 0,
      ).catch(() => undefined),
    )
    await Promise.all(postings)
    await ledger.untilSettled()
    expect(await ledger.outbox.deadLetters.list()).toEqual([])
    expect(await ledger.rows('select account_id, last_sequence from balance_view order by 1')).toEqual([
      { account_id: 'acc-1', last_sequence: '24' },
      { account_id: 'acc-2', last_sequence: '24' },
      { account_id: 'acc-3', last_sequence: '24' },
    ])
    const difference = `select count(*) from balance_view v join account_balance b using (account_id) where v.amount <> b.amount`
    expect(await ledger.value(difference)).toBe('0')
  })

  test('L9 the key that a broker would partition by is the account, and the aggregate where nothing else is said', async () => {
    const audited = defineEvents({
      LedgerPosted: {
        stream: 'ledger-events',
        aggregate: 'TRANSACTION',
        schema: unchecked<{ accountId: string }>(),
        orderingKey: ({ accountId }) => accountId,
        sequence: true,
      },
      LedgerAudited: { stream: 'ledger-events', aggregate: 'TRANSACTION', sequence: true },
    })
    await using system = await openSystem(audited)
    const keys: unknown[] = []
    await system.run([
      system.outbox.subscription('to-kafka', {
        order: 'total',
        on: { '*': ({ type, orderingKey, sequence }) => void keys.push([type, orderingKey, sequence]) },
      }),
    ])
    for (const transaction of ['tx-1', 'tx-2']) {
      await system.publish('LedgerPosted', { aggregateId: transaction, payload: { accountId: 'acc-1' } })
      await system.publish('LedgerAudited', { aggregateId: transaction, payload: {} })
    }
    await system.untilSettled()
    expect(keys).toEqual([
      ['LedgerPosted', 'acc-1', 1],
      ['LedgerAudited', 'TRANSACTION:tx-1', 1],
      ['LedgerPosted', 'acc-1', 2],
      ['LedgerAudited', 'TRANSACTION:tx-2', 1],
    ])
  })

  test('L9 a withdrawal never overtakes the deposit before it, also when the deposit is retried', async () => {
    await using ledger = await openLedger(['acc-1', 'acc-2'])
    const applied: string[] = []
    await ledger.run([
      subscription('read-model', {
        order: 'aggregate',
        retry: { delayMs: () => 600_000 },
        on: {
          LedgerPosted: async (event, ctx) => {
            if (event.aggregateId === 'deposit' && ctx.attempt < 3)
              throw new Error('the view is being rebuilt')
            await applyInSequence(ledger, event)
            applied.push(event.aggregateId)
          },
        },
      }),
    ])
    await post(ledger, { transactionId: 'deposit', accountId: 'acc-1', amount: 100 })
    await post(ledger, { transactionId: 'withdrawal', accountId: 'acc-1', amount: -70 })
    await post(ledger, { transactionId: 'of-another', accountId: 'acc-2', amount: 1 })
    for (const failures of [1, 2]) {
      await eventually('it has failed', () => ledger.toldOf('retried').length === failures)
      await eventually('the other account goes on', () => applied.includes('of-another'))
      expect(applied).toEqual(['of-another'])
      await ledger.passRetryDelays()
    }
    await ledger.untilSettled()
    expect(applied).toEqual(['of-another', 'deposit', 'withdrawal'])
  })
})

describe('duplicates in the ledger', () => {
  test('L12 a consumer refuses duplicates by transaction id', async () => {
    await using ledger = await openLedger()
    const { logger, lines } = recordingLogger()
    await ledger.run(
      [
        subscription('settlement', {
          retry: { delayMs: () => 0 },
          pollMs: 20,
          middleware: [deliveredTimes(2)],
          on: {
            LedgerPosted: (event, ctx) =>
              ledger.outbox.inTransaction(ledger.pool, async (tx) => {
                const { transactionId, accountId, amount } = event.payload
                const { rowCount } = await tx.query(
                  'insert into processed_event values ($1) on conflict do nothing',
                  [transactionId],
                )
                if (rowCount === 0) return ctx.log.warn({ transactionId }, 'Duplicate event ignored')
                await tx.query('update balance_view set amount = amount + $2 where account_id = $1', [
                  accountId,
                  amount,
                ])
              }),
          },
        }),
      ],
      { logger },
    )
    // Recorded twice under two event ids, and each of them delivered twice.
    for (const transactionId of ['tx-1', 'tx-1', 'tx-2']) {
      await post(ledger, { transactionId, accountId: 'acc-1', amount: 100 })
    }
    await ledger.untilSettled()
    expect(await ledger.count('outbox_delivery', "status = 'DONE' and attempt_count = 2")).toBe(3)
    expect(await ledger.value('select amount from balance_view')).toBe('200')
    expect(lines.filter(({ message }) => message === 'Duplicate event ignored')).toHaveLength(4)
  })

  test('L12 two consumers that get the same transaction at the same moment settle it once', async () => {
    await using ledger = await openLedger()
    const settle = (name: string) =>
      ledger.outbox.subscription(name, {
        on: {
          LedgerPosted: (event) =>
            ledger.outbox.inTransaction(ledger.pool, async (tx) => {
              const { transactionId, amount } = event.payload
              const { rowCount } = await tx.query(
                'insert into processed_event values ($1) on conflict do nothing',
                [transactionId],
              )
              if (rowCount === 1) await tx.query('update balance_view set amount = amount + $1', [amount])
            }),
        },
      })
    await ledger.run([settle('settlement'), settle('settlement-standby')])
    for (let n = 0; n < 20; n += 1)
      await post(ledger, { transactionId: `tx-${n}`, accountId: 'acc-1', amount: 100 })
    await ledger.untilSettled()
    expect(await ledger.value('select amount from balance_view')).toBe('2000')
  })
})
