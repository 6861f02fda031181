import { expect, test } from 'vitest'
import { NonRetryableError } from '../../src/index.ts'
import { allDied, type Bank, KIM, Ledger, numbers, openBank, operatorLog, pay } from './bank-system.ts'
import { eventually } from './support.ts'

const POLICY = { name: 'transient-errors', codes: ['SICK'], after: '1h', factor: 3, atMost: 2 } as const

/** How long after their death the open letters are to be re-driven, in hours; null for those left to a person. */
function waits(bank: Bank): Promise<readonly { readonly hours: number | null }[]> {
  return bank.rows(
    `select case when redrive_at < 'infinity' then extract(epoch from redrive_at - failed_at)::float8 / 3600 end as hours
       from outbox_dead_letter where not resolved and redrive_at is not null`,
  )
}

/** Lets the time of what waits for its policy be over, on the database's clock: of all, or of some of it. */
async function passTime(bank: Bank, some = 'true'): Promise<void> {
  await bank.pool.query(
    `update outbox_dead_letter set redrive_at = clock_timestamp()
      where not resolved and redrive_at < 'infinity' and ${some}`,
  )
}

test('D8 E12 automatic re-drive (the REST API and the dashboard of D8 are not part of this version): chosen errors after a back-off, so many times, under the name of a policy, the rest left to a person', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  await bank.run([ledger.subscription(bank, 'plain', { redrive: POLICY })])
  await pay(bank, 'a', [1])
  const untilWaiting = (hours: number | null): Promise<void> =>
    eventually(`it waits ${hours} h`, async () => (await waits(bank)).at(0)?.hours === hours)
  await untilWaiting(1)
  expect(ledger.attempts).toHaveLength(1)
  await passTime(bank)
  await untilWaiting(3)
  expect(ledger.attempts).toHaveLength(2)
  await passTime(bank)
  await eventually('it is left to a person', async () => {
    const [open] = await waits(bank)
    return open !== undefined && open.hours === null
  })
  expect(ledger.attempts).toHaveLength(3)
  expect(await bank.outbox.deadLetters.count()).toBe(1)
  expect(await operatorLog(bank)).toEqual(
    Array.from({ length: 2 }, () => ({
      operator: 'policy:transient-errors',
      action: 'retry',
      affected: 1,
      note: null,
    })),
  )
  await eventually('it is left to a person', () => bank.toldOf('redriven').at(-1)?.leftToPerson === 1)
  expect(bank.toldOf('redriven').at(-1)).toMatchObject({ policy: 'transient-errors' })

  // A person may try once more; the policy does not take that up.
  const [open] = await bank.outbox.deadLetters.list()
  await bank.outbox.deadLetters.retry(open?.id ?? '', KIM)
  await eventually('it died of it again', () => ledger.attempts.length === 4)
  await eventually('and is left to a person again', async () => {
    const [again] = await waits(bank)
    return again !== undefined && again.hours === null
  })
})

test('D8 E12 no policy, and no other code than it names, is ever re-driven by itself', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  const failing = (status: number): never => {
    throw Object.assign(new Error(`answered ${status}`), { status })
  }
  const byStatus = ledger.subscription(bank, 'webhooks', {
    maxAttempts: 1,
    redrive: { name: 'server-errors', codes: ['HTTP_5*'], after: 0, atMost: 1 },
    on: { Paid: ({ payload }) => failing(payload.n) },
  })
  await bank.run([ledger.subscription(bank, 'plain'), byStatus])
  await pay(bank, 'a', [404, 503, 500])
  const letters = (where: string): Promise<number> => bank.count('outbox_dead_letter', where)
  await eventually('both of class 5 died twice', async () => {
    return (await letters("error_code like 'HTTP_5%' and redrive_at = 'infinity'")) === 2
  })
  expect(await letters("error_code like 'HTTP_5%'")).toBe(4)
  expect(await letters("error_code = 'HTTP_404' and not resolved and redrive_at is null")).toBe(1)
  expect(await letters("subscription = 'plain' and not resolved and redrive_at is null")).toBe(3)
  expect(ledger.attempts).toHaveLength(3)
})

test('D8 however many workers there are, each letter is re-driven once', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  const redrive = { ...POLICY, after: 0, atMost: 1 }
  for (let n = 0; n < 4; n += 1) {
    await bank.runElsewhere([ledger.subscription(bank, 'plain', { redrive })])
  }
  await pay(bank, 'a', numbers(60))
  await eventually('all died twice', async () => {
    return (await bank.count('outbox_dead_letter', "not resolved and redrive_at = 'infinity'")) === 60
  })
  const log = await operatorLog(bank)
  expect(log).toHaveLength(60)
  expect(new Set(log.map(({ operator }) => operator))).toEqual(new Set(['policy:transient-errors']))
  expect(await bank.count('outbox_dead_letter')).toBe(120)
})

test('D8 of one key a policy lets nothing go before an earlier one', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = (_, n) => n <= 4
  const other = new Ledger()
  other.isSick = () => true
  // One worker does the policies of its subscriptions in this order.
  await bank.run([
    ledger.subscription(bank, 'books', {
      order: 'aggregate',
      lanes: 1,
      onDead: 'continue',
      redrive: POLICY,
    }),
    other.subscription(bank, 'plain', { redrive: POLICY }),
  ])
  await pay(bank, 'a', numbers(5))
  await allDied(bank, 9)
  await eventually('all wait for the policy', async () => (await waits(bank)).length === 9)
  ledger.isSick = () => false
  const [first] = await bank.rows<{ readonly id: string }>(
    `select id from outbox_dead_letter where subscription = 'books' order by position limit 1`,
  )
  await passTime(bank, `subscription = 'books' and id <> ${first?.id}`)
  await passTime(bank, `subscription = 'plain'`)
  // One round re-drove these, and a later one, for which the others of the key were due, set their next time.
  await eventually('the policies were carried out again', async () => {
    return (await waits(bank)).filter(({ hours }) => hours === 3).length === 5
  })
  expect(await bank.count('outbox_dead_letter', "subscription = 'books' and resolved")).toBe(0)
  expect(ledger.handled).toEqual(['a:5'])
  await passTime(bank, `id = ${first?.id}`)
  await eventually('all are handled', () => ledger.handled.length === 5)
  expect(ledger.handled).toEqual(['a:5', 'a:1', 'a:2', 'a:3', 'a:4'])
})

test('D8 a person cannot act in the name of a policy', async () => {
  await using bank = await openBank()
  const ledger = new Ledger()
  await bank.run([
    ledger.subscription(bank, 'plain', {
      on: {
        Paid: () => {
          throw new NonRetryableError('no')
        },
      },
    }),
  ])
  await pay(bank, 'a', [1])
  await allDied(bank, 1)
  const [letter] = await bank.outbox.deadLetters.list()
  const attempt = bank.outbox.deadLetters.retry(letter?.id ?? '', { operator: 'policy:transient-errors' })
  await expect(attempt).rejects.toThrow('operator must be the name of a person')
  expect(await operatorLog(bank)).toEqual([])
})
