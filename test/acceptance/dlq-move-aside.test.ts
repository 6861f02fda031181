import { expect, test } from 'vitest'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { allDied, type Bank, KIM, Ledger, numbers, openBank, operatorLog, pay } from './bank-system.ts'
import { eventually, rejection } from './support.ts'

const ORDERED = { order: 'aggregate', lanes: 4 } as const
const KEY = 'account:a'

test('E12 a blocked key is moved aside in bounded parts, new events pass, and it is re-driven later in order', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = (account, n) => account === 'a' && n === 1
  await bank.run([ledger.subscription(bank, 'books', ORDERED)])
  await pay(bank, 'a', [1])
  await allDied(bank, 1)
  await pay(bank, 'a', numbers(1_200, 2))
  expect(await bank.outbox.moveAside('books', KEY, KIM)).toEqual({ moved: 1_200, free: true })
  await pay(bank, 'a', [5_000])
  await eventually('the new event is handled', () => ledger.handled.length === 1)
  expect(ledger.handled).toEqual(['a:5000'])
  expect(await bank.outbox.deadLetters.count({ errorCode: 'MOVED_ASIDE' })).toBe(1_200)
  // Nothing of theirs was tried: no other reason of the list would be true.
  expect(await bank.outbox.deadLetters.count({ reason: 'MOVED_ASIDE' })).toBe(1_200)
  const parts = (await operatorLog(bank)).filter(({ action }) => action === 'move-aside')
  expect(parts.length).toBeGreaterThan(1)
  expect(Math.max(...parts.map(({ affected }) => affected))).toBeLessThanOrEqual(1_000)
  expect(parts.reduce((sum, { affected }) => sum + affected, 0)).toBe(1_200)
  expect(parts[0]).toMatchObject({ operator: KIM.operator, note: KIM.note })

  ledger.isSick = () => false
  const plan = await bank.outbox.redrive.plan({ subscription: 'books', orderingKey: KEY })
  expect(plan).toMatchObject({ letters: 1_201, reordered: 1_201 })
  const end = await bank.outbox.redrive.apply(plan.id, { ...KIM, ratePerSecond: null, atOnce: 600 })
  expect(end).toMatchObject({ state: 'done', succeeded: 1_201 })
  expect(ledger.handled).toEqual(['a:5000', ...numbers(1_201).map((n) => `a:${n}`)])
  expect(ledger.mostAtOnce).toBe(1)
})

test('E12 while a key is being moved nothing passes: it stays blocked until the last part', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = (_, n) => n === 1
  const books = ledger.subscription(bank, 'books', ORDERED)
  const worker = await bank.run([books])
  await pay(bank, 'a', [1])
  await allDied(bank, 1)
  await worker.stop()
  await pay(bank, 'a', numbers(1_001, 2))
  const store = postgresStore({ pool: bank.pool, schema: bank.schema })
  // Then the process is killed.
  expect(await store.moveAside('books', KEY, 'Kim', null)).toEqual({ moved: 1_000, free: false })
  await pay(bank, 'a', [2_000])
  await pay(bank, 'b', [2])
  await bank.run([books])
  await eventually('another key goes on', () => ledger.handled.includes('b:2'))
  expect(await bank.outbox.moveAside('books', KEY, KIM)).toEqual({ moved: 2, free: true })
  expect(ledger.handled).toEqual(['b:2'])
  expect(await bank.outbox.deadLetters.count()).toBe(1_003)
})

test('E12 what is not blocked cannot be moved aside', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  await bank.run([ledger.subscription(bank, 'books', ORDERED), ledger.subscription(bank, 'plain')])
  await pay(bank, 'a', [1])
  await allDied(bank, 2)
  const moveAside = (name: string, key: string): ReturnType<Bank['outbox']['moveAside']> =>
    bank.outbox.moveAside(name, key, KIM)
  expect(await rejection(moveAside('books', 'account:b'))).toMatchObject({
    code: 'INVALID_STATE',
    message: expect.stringContaining('is not blocked'),
  })
  expect(await rejection(moveAside('plain', KEY))).toMatchObject({ code: 'INVALID_STATE' })
  expect(await rejection(moveAside('nobody', KEY))).toMatchObject({ code: 'NOT_FOUND' })
  expect(await moveAside('books', KEY)).toEqual({ moved: 0, free: true })
  expect(await rejection(moveAside('books', KEY))).toMatchObject({ code: 'INVALID_STATE' })
  expect((await operatorLog(bank)).map(({ action }) => action)).toEqual(['move-aside'])
})

test('E12 a blocked key is released by retry and by resolving, each in order', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = (_, n) => n === 1
  await bank.run([ledger.subscription(bank, 'books', ORDERED)])
  await pay(bank, 'a', numbers(3))
  await pay(bank, 'b', numbers(3))
  await allDied(bank, 2)
  ledger.isSick = () => false
  const letters = await bank.outbox.deadLetters.list()
  const of = (account: string): string => letters.find(({ aggregateId }) => aggregateId === account)?.id ?? ''
  await bank.outbox.deadLetters.retry(of('a'), KIM)
  await bank.outbox.deadLetters.resolve(of('b'), KIM)
  await eventually('both keys went on', () => ledger.handled.length === 5)
  expect(ledger.handled.filter((each) => each.startsWith('a:'))).toEqual(['a:1', 'a:2', 'a:3'])
  expect(ledger.handled.filter((each) => each.startsWith('b:'))).toEqual(['b:2', 'b:3'])
})
