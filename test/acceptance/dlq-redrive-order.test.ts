import { expect, test } from 'vitest'
import { allDied, type Bank, KIM, Ledger, numbers, openBank, pay } from './bank-system.ts'
import { eventually } from './support.ts'

const ORDERED = { order: 'aggregate', lanes: 4 } as const
const CONTINUES = { ...ORDERED, onDead: 'continue' } as const
const FAST = { ratePerSecond: null } as const
const named = (account: string, ...ns: readonly number[]): readonly string[] =>
  ns.map((n) => `${account}:${n}`)

async function untilHandled(ledger: Ledger, count: number): Promise<void> {
  await eventually(`${count} handled`, () => ledger.handled.length === count)
}

test('D3 several dead letters of one key, retried in any order, run in the order of the key and one at a time', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = (_, n) => n <= 5
  const books = ledger.subscription(bank, 'books', CONTINUES)
  const worker = await bank.run([books])
  await pay(bank, 'a', numbers(6))
  await allDied(bank, 5)
  await untilHandled(ledger, 1)
  await worker.stop()
  ledger.isSick = () => false
  // Newest first: against the order of the key.
  for (const { id } of await bank.outbox.deadLetters.list()) await bank.outbox.deadLetters.retry(id, KIM)
  await bank.run([books])
  await untilHandled(ledger, 6)
  expect(ledger.handled).toEqual(named('a', 6, 1, 2, 3, 4, 5))
  expect(ledger.mostAtOnce).toBe(1)
})

test('D8 a plan tells what comes too late for its order, and is applied in the order of each key', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = (account, n) => n <= 20 || account === 'c'
  await bank.run([ledger.subscription(bank, 'books', CONTINUES)])
  await pay(bank, 'a', numbers(21))
  await pay(bank, 'b', numbers(21))
  await pay(bank, 'c', numbers(3))
  await allDied(bank, 43)
  ledger.isSick = () => false
  const plan = await bank.outbox.redrive.plan({ subscription: 'books' })
  expect(plan).toMatchObject({
    letters: 43,
    reordered: 40,
    keyCount: 3,
    keys: [
      { subscription: 'books', orderingKey: 'account:a', letters: 20, reordered: 20 },
      { subscription: 'books', orderingKey: 'account:b', letters: 20, reordered: 20 },
      { subscription: 'books', orderingKey: 'account:c', letters: 3, reordered: 0 },
    ],
  })
  // Fewer at once than a key has: it takes several runs.
  const end = await bank.outbox.redrive.apply(plan.id, { ...KIM, ...FAST, atOnce: 7 })
  expect(end).toMatchObject({ state: 'done', succeeded: 43 })
  const of = (account: string): readonly string[] =>
    ledger.handled.filter((each) => each.startsWith(`${account}:`))
  expect(of('a')).toEqual(named('a', 21, ...numbers(20)))
  expect(of('b')).toEqual(named('b', 21, ...numbers(20)))
  expect(of('c')).toEqual(named('c', 1, 2, 3))
  expect(ledger.mostAtOnce).toBe(1)
})

test('D8 of a subscription that blocks nothing was passed, and what waited follows in order', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = (account, n) => account === 'a' && n === 1
  await bank.run([ledger.subscription(bank, 'books', ORDERED)])
  await pay(bank, 'a', numbers(4))
  await pay(bank, 'b', numbers(2))
  await allDied(bank, 1)
  await untilHandled(ledger, 2)
  ledger.isSick = () => false
  const plan = await bank.outbox.redrive.plan()
  expect(plan).toMatchObject({ letters: 1, reordered: 0 })
  expect(await bank.outbox.redrive.apply(plan.id, { ...KIM, ...FAST })).toMatchObject({ succeeded: 1 })
  await untilHandled(ledger, 6)
  expect(ledger.handled).toEqual([...named('b', 1, 2), ...named('a', 1, 2, 3, 4)])
})

/** A key of a blocking subscription with five dead letters: the first failed, the others were moved aside with it. */
async function movedKey(): Promise<{ readonly bank: Bank; readonly ledger: Ledger; readonly key: string }> {
  const bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = (_, n) => n === 1
  await bank.run([ledger.subscription(bank, 'books', ORDERED)])
  await pay(bank, 'a', numbers(5))
  await allDied(bank, 1)
  expect(await bank.outbox.moveAside('books', 'account:a', KIM)).toEqual({ moved: 4, free: true })
  return { bank, ledger, key: 'account:a' }
}

test('D8 one that dies again blocks its key, and what was re-driven behind it waits and is not lost', async () => {
  const { bank, ledger, key } = await movedKey()
  await using _ = bank
  ledger.isSick = (_account, n) => n === 2
  const { id } = await bank.outbox.redrive.plan({ orderingKey: key })
  const end = await bank.outbox.redrive.apply(id, { ...KIM, ...FAST })
  expect(end).toMatchObject({
    state: 'done',
    driven: 5,
    succeeded: 1,
    failedAgain: 1,
    blocked: 3,
    onTheirWay: 0,
  })
  expect(ledger.handled).toEqual(named('a', 1))
  const [again] = await bank.outbox.deadLetters.list()
  await bank.outbox.deadLetters.resolve(again?.id ?? '', KIM)
  await untilHandled(ledger, 4)
  expect(ledger.handled).toEqual(named('a', 1, 3, 4, 5))
})

test('D8 what stands behind one that died again is passed over and stays a dead letter', async () => {
  const { bank, ledger, key } = await movedKey()
  await using _ = bank
  ledger.isSick = (_account, n) => n === 2
  const { id } = await bank.outbox.redrive.plan({ orderingKey: key })
  const end = await bank.outbox.redrive.apply(id, { ...KIM, ...FAST, atOnce: 2 })
  expect(end).toMatchObject({
    state: 'done',
    driven: 2,
    succeeded: 1,
    failedAgain: 1,
    blocked: 0,
    waiting: 0,
  })
  expect(end.skipped).toEqual({ resolved: 0, gone: 0, retired: 0, behind: 3 })
  expect(await bank.outbox.deadLetters.count()).toBe(4)
  // A new plan takes the key where it stands.
  ledger.isSick = () => false
  const rest = await bank.outbox.redrive.plan({ orderingKey: key })
  expect(await bank.outbox.redrive.apply(rest.id, { ...KIM, ...FAST })).toMatchObject({ succeeded: 4 })
  expect(ledger.handled).toEqual(named('a', 1, 2, 3, 4, 5))
})

test('D8 a new event of the key waits behind the run that is on its way', async () => {
  const { bank, ledger, key } = await movedKey()
  await using _ = bank
  ledger.isSick = () => false
  await bank.outbox.pause('books', KIM)
  const { id } = await bank.outbox.redrive.plan({ orderingKey: key })
  const applying = bank.outbox.redrive.apply(id, { ...KIM, ...FAST })
  await eventually('all are on their way', async () => (await bank.outbox.redrive.status(id)).driven === 5)
  await pay(bank, 'a', [6])
  await bank.outbox.resume('books', KIM)
  expect(await applying).toMatchObject({ state: 'done', succeeded: 5 })
  await untilHandled(ledger, 6)
  expect(ledger.handled).toEqual(named('a', 1, 2, 3, 4, 5, 6))
})
