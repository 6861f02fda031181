import { expect, test } from 'vitest'
import { allDied, KIM, Ledger, numbers, openBank, operatorLog, pay } from './bank-system.ts'
import { rejection } from './support.ts'

test('D8 a plan counts per subscription, type and key, and changes nothing', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  await bank.run([
    ledger.subscription(bank, 'plain'),
    ledger.subscription(bank, 'books', { order: 'aggregate' }),
  ])
  await pay(bank, 'a', [1, 2])
  await pay(bank, 'b', [1])
  await allDied(bank, 5)
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
  await allDied(bank, 30)
  ledger.isSick = () => false
  const { id } = await bank.outbox.redrive.plan({ subscription: 'plain' })
  const told: number[] = []
  const end = await bank.outbox.redrive.apply(id, {
    ...KIM,
    ratePerSecond: null,
    onProgress: ({ driven }) => told.push(driven),
  })
  expect(end).toMatchObject({
    state: 'done',
    letters: 30,
    driven: 30,
    succeeded: 30,
    failedAgain: 0,
    waiting: 0,
  })
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
  await allDied(bank, 60)
  const { id } = await bank.outbox.redrive.plan()
  const limits = { ratePerSecond: null, stopWhenFailedShare: 0.5, minSample: 5, atOnce: 10 }
  const stopped = await bank.outbox.redrive.apply(id, { ...KIM, ...limits })
  expect(stopped.state).toBe('stopped')
  expect(stopped.failedAgain).toBeGreaterThanOrEqual(5)
  expect(stopped.driven).toBeLessThan(60)
  expect((await operatorLog(bank)).at(-1)).toMatchObject({ action: 'redrive-stop', operator: KIM.operator })
  await expect(bank.outbox.redrive.apply(id, KIM)).rejects.toThrow('stopped by itself')
  ledger.isSick = () => false
  await bank.untilSettled()
  const resumed = await bank.outbox.redrive.apply(id, { ...KIM, ...limits, resume: true })
  expect(resumed).toMatchObject({ state: 'done', waiting: 0, onTheirWay: 0 })
  expect(resumed.succeeded).toBe(60 - resumed.failedAgain)
})

test('D8 filters choose what a plan takes, and one that matches nothing is refused', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  await bank.run([
    ledger.subscription(bank, 'plain'),
    ledger.subscription(bank, 'books', { order: 'aggregate' }),
  ])
  await pay(bank, 'a', [1])
  await bank.publish('Refunded', { aggregateId: 'b', payload: { n: 1 } })
  await allDied(bank, 4)
  const { redrive, deadLetters } = bank.outbox
  const letters = await deadLetters.list()
  const lettersOf = async (filter: Parameters<typeof redrive.plan>[0]): Promise<number> =>
    (await redrive.plan(filter)).letters
  expect(await lettersOf({})).toBe(4)
  expect(await lettersOf({ subscription: 'books' })).toBe(2)
  expect(await lettersOf({ stream: 'bank.refund' })).toBe(2)
  expect(await lettersOf({ eventType: 'Paid', subscription: 'plain' })).toBe(1)
  expect(await lettersOf({ errorCode: 'SICK' })).toBe(4)
  expect(await lettersOf({ orderingKey: 'account:b' })).toBe(1)
  expect(await lettersOf({ ids: letters.slice(0, 3).map(({ id }) => id) })).toBe(3)
  const failedAt = (n: number): Date => letters.at(n)?.failedAt as Date
  expect(await lettersOf({ failedFrom: new Date(failedAt(-1).getTime() - 1_000) })).toBe(4)
  const plans = await bank.count('outbox_redrive_plan')
  const nothing = [
    { subscription: 'nobody' },
    { errorCode: "SICK' or 'a' = 'a" },
    { failedTo: new Date(failedAt(-1).getTime() - 1_000) },
    { failedFrom: new Date(failedAt(0).getTime() + 1_000) },
  ]
  for (const filter of nothing) {
    expect(await rejection(redrive.plan(filter))).toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('No open dead letter'),
    })
  }
  expect(await rejection(redrive.plan({ ids: ['404'] }))).toMatchObject({
    code: 'NOT_FOUND',
    message: expect.stringContaining('There is no dead letter 404'),
  })
  expect(await bank.count('outbox_redrive_plan')).toBe(plans)
})

test('D3 D8 a plan takes the letters of one group, or of one reason, and no others', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = (account) => account === 'a'
  const fail = (): never => {
    throw new Error('tired')
  }
  const tired = bank.outbox.subscription('tired', { maxAttempts: 1, on: { Paid: fail } })
  await bank.run([ledger.subscription(bank, 'plain'), tired])
  await pay(bank, 'a', [1, 2])
  await pay(bank, 'b', [1])
  await allDied(bank, 5)
  const { redrive, deadLetters } = bank.outbox
  const groups = await deadLetters.group()
  const sick = groups.find(({ errorCode }) => errorCode === 'SICK')
  expect(sick?.count).toBe(2)
  const ofGroup = await redrive.plan({ fingerprint: sick?.fingerprint ?? '' })
  expect(ofGroup.subscriptions).toEqual([{ subscription: 'plain', letters: 2, reordered: 0 }])
  const ofReason = await redrive.plan({ reason: 'RETRIES_EXHAUSTED' })
  expect(ofReason.subscriptions).toEqual([{ subscription: 'tired', letters: 3, reordered: 0 }])
})

test('D8 plans that nobody touches any more are forgotten, whatever became of them', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  await bank.run([ledger.subscription(bank, 'plain')])
  await pay(bank, 'a', [1, 2])
  await allDied(bank, 2)
  const { redrive } = bank.outbox
  const done = await redrive.plan({ ids: ['1'] })
  ledger.isSick = () => false
  await redrive.apply(done.id, KIM)
  const cancelled = await redrive.plan()
  await redrive.cancel(cancelled.id, KIM)
  const kept = await redrive.plan()
  await bank.pool.query(
    `update outbox_redrive_plan set updated_at = now() - interval '31 days' where id = any ($1::bigint[])`,
    [[done.id, cancelled.id]],
  )
  const newest = await redrive.plan()
  const ids = await bank.rows<{ id: string }>('select id::text from outbox_redrive_plan order by id')
  expect(ids.map(({ id }) => id)).toEqual([kept.id, newest.id])
  expect(await bank.count('outbox_redrive_item')).toBe(2)
  expect(await rejection(redrive.status(done.id))).toMatchObject({ code: 'NOT_FOUND' })
})
