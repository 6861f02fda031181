import { describe, expect, test } from 'vitest'
import { type EventBus, type OutboxEvent, subscription } from '../../src/index.ts'
import { resolveSubscription } from '../../src/worker/resolve-subscription.ts'
import {
  type DepositStep,
  deposit,
  type LedgerEvents,
  type LedgerPostedEvent,
  ledgerEvents,
  OptimisticLockError,
  openLedger,
  outboxRecorder,
  POLLER,
  runDeposit,
} from './ledger-system.ts'
import { eventually, signal } from './support.ts'

const command = { transactionId: 'tx-1', accountId: 'acc-1', amount: 100 } as const

describe('deposits of the ledger', () => {
  test('L1 transaction, journal entries, balance and event are committed together', async () => {
    await using ledger = await openLedger()
    await runDeposit(ledger, command)
    expect(await ledger.count('ledger_transaction')).toBe(1)
    expect(await ledger.count('journal_entry')).toBe(2)
    expect(await ledger.value('select amount from account_balance')).toBe('100')
    expect(await ledger.rows('select aggregate_id, payload from outbox_event')).toEqual([
      {
        aggregate_id: 'tx-1',
        payload: { transactionId: 'tx-1', accountId: 'acc-1', amount: 100, balanceAfter: 100 },
      },
    ])
  })

  test.each<DepositStep>(['transaction', 'journal', 'event', 'balance'])(
    'L1 a failure after the %s leaves nothing at all',
    async (failingStep) => {
      await using ledger = await openLedger()
      const handled: unknown[] = []
      await ledger.run([
        subscription('read-model', { on: { LedgerPosted: (event) => void handled.push(event.aggregateId) } }),
      ])
      const failing = runDeposit(ledger, command, (step) => {
        if (step === failingStep) throw new Error(`failed after the ${step}`)
      })
      await expect(failing).rejects.toThrow(`failed after the ${failingStep}`)
      for (const table of [
        'ledger_transaction',
        'journal_entry',
        'outbox_event',
        'outbox_delivery',
        'outbox_sequence',
      ]) {
        expect(await ledger.count(table)).toBe(0)
      }
      expect(await ledger.value('select amount from account_balance')).toBe('0')
      await runDeposit(ledger, { ...command, transactionId: 'tx-2' })
      await ledger.untilSettled()
      expect(handled).toEqual(['tx-2'])
    },
  )

  test('L1 a deposit whose event is not valid is not made either', async () => {
    await using ledger = await openLedger()
    const invalid = runDeposit(ledger, { ...command, amount: 'a lot' as never })
    await expect(invalid).rejects.toThrow()
    expect(await ledger.count('ledger_transaction')).toBe(0)
    expect(await ledger.count('outbox_event')).toBe(0)
  })
})

describe('events of the ledger', () => {
  test('L2 they are stored as LEDGER_POSTED and LEDGER_REVERSED of aggregate TRANSACTION, through a recorder port', async () => {
    await using ledger = await openLedger()
    const { outbox, pool } = ledger
    const event: LedgerPostedEvent = {
      transactionId: 'tx-1',
      accountId: 'acc-1',
      amount: 100,
      balanceAfter: 100,
    }
    await outbox.inTransaction(pool, async (tx) => {
      const recorder = outboxRecorder(outbox, tx)
      await recorder.recordPosted(event)
      await recorder.recordReversed({
        ...event,
        transactionId: 'tx-2',
        amount: -100,
        reversedTransactionId: 'tx-1',
      })
    })
    expect(
      await ledger.rows('select event_type, aggregate_type, aggregate_id from outbox_event order by id'),
    ).toEqual([
      { event_type: 'LEDGER_POSTED', aggregate_type: 'TRANSACTION', aggregate_id: 'tx-1' },
      { event_type: 'LEDGER_REVERSED', aggregate_type: 'TRANSACTION', aggregate_id: 'tx-2' },
    ])
    // The same service with another adapter behind the port: a list.
    const recorded: unknown[] = []
    const list: EventBus<LedgerEvents, object> = {
      publish: async (_tx, name, input) => {
        recorded.push([name, input.payload])
        return ''
      },
      publishAll: async () => [],
    }
    await outbox.inTransaction(pool, (tx) =>
      deposit(tx, outboxRecorder(list, tx), { ...command, transactionId: 'tx-3' }),
    )
    expect(recorded).toEqual([['LedgerPosted', { ...event, transactionId: 'tx-3' }]])
    expect(await ledger.count('outbox_event')).toBe(2)
  })

  test('L2 read model, triggers and audit each get them, under the names of the code', async () => {
    await using ledger = await openLedger()
    const got: Record<string, OutboxEvent[]> = { 'read-model': [], 'position-trigger': [], audit: [] }
    await ledger.run(
      Object.entries(got).map(([name, list]) =>
        ledger.outbox.subscription(name, {
          on: {
            LedgerPosted: (event) => void list.push(event),
            LedgerReversed: (event) => void list.push(event),
          },
        }),
      ),
    )
    await runDeposit(ledger, command)
    const payload = { ...command, amount: -100, balanceAfter: 0, reversedTransactionId: 'tx-1' }
    await ledger.publish('LedgerReversed', { aggregateId: 'tx-2', payload })
    await ledger.untilSettled()
    for (const events of Object.values(got)) {
      expect(events.toSorted((one, other) => one.type.localeCompare(other.type))).toMatchObject([
        { type: 'LedgerPosted', aggregateType: 'TRANSACTION', payload: { amount: 100 } },
        { type: 'LedgerReversed', aggregateType: 'TRANSACTION', payload: { reversedTransactionId: 'tx-1' } },
      ])
    }
  })
})

describe('the poller of the ledger', () => {
  test('L3 2 s, 100 at once, 5 retries of 2 s each: exactly what the options say', () => {
    const poller = subscription<LedgerEvents, unknown>('kafka-publisher', {
      ...POLLER,
      on: { LedgerPosted: () => {} },
    })
    const resolved = resolveSubscription(ledgerEvents, poller)
    expect(resolved).toMatchObject({ pollMs: 2_000, batchSize: 100, drain: false })
    const delays = Array.from({ length: resolved.definition.maxAttempts - 1 }, (_, n) =>
      resolved.retry.backoff.delayMs(n + 1, () => 0.99),
    )
    expect(delays).toEqual([2_000, 2_000, 2_000, 2_000, 2_000])
    expect(delays.reduce((sum, ms) => sum + ms)).toBe(10_000)
  })

  test('L3 PENDING becomes PROCESSED, or FAILED after the fifth retry, in a process of its own', async () => {
    await using ledger = await openLedger()
    const runs: string[] = []
    const poller = await ledger.runElsewhere([
      subscription('kafka-publisher', {
        ...POLLER,
        pollMs: 20,
        on: {
          LedgerPosted: (event) => {
            runs.push(event.aggregateId)
            if (event.aggregateId === 'tx-fails') throw new Error('the broker is away')
          },
        },
      }),
    ])
    await runDeposit(ledger, { ...command, transactionId: 'tx-1' })
    await runDeposit(ledger, { ...command, transactionId: 'tx-fails' })
    for (const failures of [1, 2, 3, 4, 5]) {
      await eventually('it has failed', () => ledger.toldOf('retried').length >= failures)
      await ledger.passRetryDelays()
    }
    await ledger.untilSettled()
    expect(runs.filter((id) => id === 'tx-1')).toHaveLength(1)
    expect(runs.filter((id) => id === 'tx-fails')).toHaveLength(6)
    expect(ledger.toldOf('retried').map(({ delayMs }) => delayMs)).toEqual([
      2_000, 2_000, 2_000, 2_000, 2_000,
    ])
    expect(await ledger.outbox.deadLetters.list()).toMatchObject([
      { aggregateId: 'tx-fails', eventType: 'LEDGER_POSTED', retryCount: 5 },
    ])
    expect(poller.id).not.toBe('')
  })
})

describe('optimistic locking of the ledger', () => {
  test('L4 a deposit that lost the race is made again, and only its last try leaves an event', async () => {
    await using ledger = await openLedger()
    const bothHaveRead = signal()
    let readers = 0
    let tries = 0
    const retryingDeposit = async (transactionId: string): Promise<void> => {
      for (;;) {
        tries += 1
        try {
          await runDeposit(ledger, { ...command, transactionId }, async (step) => {
            if (step !== 'read') return
            readers += 1
            if (readers === 2) bothHaveRead.happen()
            await bothHaveRead.happened
          })
          return
        } catch (error) {
          if (!(error instanceof OptimisticLockError)) throw error
        }
      }
    }
    await Promise.all([retryingDeposit('tx-1'), retryingDeposit('tx-2')])
    expect(tries).toBe(3)
    expect(await ledger.value('select amount from account_balance')).toBe('200')
    expect(
      await ledger.rows('select aggregate_id, sequence from outbox_event order by aggregate_id'),
    ).toHaveLength(2)
    expect(await ledger.count('journal_entry')).toBe(4)
    expect(await ledger.rows('select sequence from outbox_event order by sequence')).toEqual([
      { sequence: '1' },
      { sequence: '2' },
    ])
  })

  test('L4 so is a transaction that the database itself could not serialize', async () => {
    await using ledger = await openLedger()
    const { outbox, pool } = ledger
    const bothHaveRead = signal()
    let readers = 0
    let tries = 0
    const serializable = (transactionId: string): Promise<void> =>
      outbox.inTransaction(
        pool,
        (tx) => {
          tries += 1
          return deposit(tx, outboxRecorder(outbox, tx), { ...command, transactionId }, async (step) => {
            if (step !== 'read') return
            readers += 1
            if (readers === 2) bothHaveRead.happen()
            await bothHaveRead.happened
          })
        },
        { isolation: 'serializable', retries: 10 },
      )
    await Promise.all([serializable('tx-1'), serializable('tx-2')])
    expect(tries).toBeGreaterThan(2)
    expect(await ledger.value('select amount from account_balance')).toBe('200')
    expect(await ledger.count('outbox_event')).toBe(2)
    expect(await ledger.count('ledger_transaction')).toBe(2)
  })
})
