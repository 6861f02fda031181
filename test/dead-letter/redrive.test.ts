import { expect, test } from 'vitest'
import { eventually } from '../acceptance/support.ts'
import { KIM, Ledger, openBank, operatorLog, pay } from './scene.ts'

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n + 1)

test('D8 a plan counts per subscription, type and key, and changes nothing', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  await bank.run([ledger.subscription(bank, 'plain'), ledger.subscription(bank, 'books', { order: 'aggregate' })])
  await pay(bank, 'a', [1, 2])
  await pay(bank, 'b', [1])
  await eventually('five died', async () => (await bank.outbox.deadLetters.count()) === 5)
  const plan = await bank.outbox.redrive.plan()
  expect(plan).toMatchObject({
    letters: 5,
    reordered: 0,
    unreachable: 0,
    subscriptions: [
      { subscription: 'books', letters: 2, reordered: 0 },
      { subscription: 'plain', letters: 3, reordered: 0 },
    ],
    eventTypes: [{ eventType: 'Paid', letters: 5 }],
    keyCount: 2,
  })
  expect(await bank.outbox.deadLetters.count()).toBe(5)
  expect(await operatorLog(bank)).toEqual([])
})

test('D8 applying a plan delivers every letter again, with the operator in the log', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  await bank.run([ledger.subscription(bank, 'plain')])
  await pay(bank, 'a', numbers(30))
  await eventually('all died', async () => (await bank.outbox.deadLetters.count()) === 30)
  ledger.isSick = () => false
  const { id } = await bank.outbox.redrive.plan({ subscription: 'plain' })
  const told: number[] = []
  const end = await bank.outbox.redrive.apply(id, {
    ...KIM,
    ratePerSecond: null,
    onProgress: ({ driven }) => told.push(driven),
  })
  expect(end).toMatchObject({ state: 'done', letters: 30, driven: 30, succeeded: 30, failedAgain: 0, waiting: 0 })
  expect(told.at(-1)).toBe(30)
  expect(new Set(ledger.handled).size).toBe(30)
  const log = await operatorLog(bank)
  expect(log.filter(({ action }) => action === 'retry')).toHaveLength(30)
  const batches = log.filter(({ action }) => action === 'redrive')
  expect(batches.reduce((sum, { affected }) => sum + affected, 0)).toBe(30)
  expect(new Set(log.map(({ operator, note }) => `${operator}|${note}`))).toEqual(
    new Set([`${KIM.operator}|${KIM.note}`]),
  )
  // Applied once more it does nothing.
  expect(await bank.outbox.redrive.apply(id, KIM)).toMatchObject({ state: 'done', driven: 30 })
  expect(ledger.handled).toHaveLength(30)
})

test('D8 a sick handler makes it stop by itself, and it goes on only when asked to', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  await bank.run([ledger.subscription(bank, 'plain')])
  await pay(bank, 'a', numbers(60))
  await eventually('all died', async () => (await bank.outbox.deadLetters.count()) === 60)
  const { id } = await bank.outbox.redrive.plan()
  const limits = { ratePerSecond: null, stopWhenFailedShare: 0.5, minSample: 5, atOnce: 10 }
  const stopped = await bank.outbox.redrive.apply(id, { ...KIM, ...limits })
  expect(stopped.state).toBe('stopped')
  expect(stopped.failedAgain).toBeGreaterThanOrEqual(5)
  expect(stopped.driven).toBeLessThan(60)
  expect((await operatorLog(bank)).at(-1)).toMatchObject({ action: 'redrive-stop', operator: KIM.operator })
  await expect(bank.outbox.redrive.apply(id, KIM)).rejects.toThrow('stopped by itself')
  ledger.isSick = () => false
  await eventually('what was on its way has ended', async () => {
    return (await bank.count('outbox_delivery', "status not in ('DONE', 'DEAD')")) === 0
  })
  const resumed = await bank.outbox.redrive.apply(id, { ...KIM, ...limits, resume: true })
  expect(resumed).toMatchObject({ state: 'done', waiting: 0, onTheirWay: 0 })
  expect(resumed.succeeded).toBe(60 - resumed.failedAgain)
})
