import { expect, test } from 'vitest'
import type { RedrivingStore } from '../../src/dead-letter/apply-plan.ts'
import { createRedrive } from '../../src/dead-letter/redrive.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { allDied, type Bank, KIM, Ledger, numbers, openBank, operatorLog, pay } from './bank-system.ts'
import { eventually, rejection } from './support.ts'

/** A bank with so many dead letters of an unordered subscription whose handler is well again. */
async function healedBank(letters: number): Promise<{ readonly bank: Bank; readonly ledger: Ledger }> {
  const bank = await openBank()
  const ledger = new Ledger()
  ledger.isSick = () => true
  await bank.run([ledger.subscription(bank, 'plain')])
  await pay(bank, 'a', numbers(letters))
  await allDied(bank, letters)
  ledger.isSick = () => false
  return { bank, ledger }
}

/** The store of a process that is killed after so many batches. */
function killedAfter(bank: Bank, batches: number): RedrivingStore {
  const store = postgresStore({ pool: bank.pool, schema: bank.schema })
  let left = batches
  return {
    planRedrive: (filter) => store.planRedrive(filter),
    redriveProgress: (plan) => store.redriveProgress(plan),
    beginRedrive: (plan, operator, settings) => store.beginRedrive(plan, operator, settings),
    cancelRedrive: (plan, operator, note) => store.cancelRedrive(plan, operator, note),
    moveAside: (name, key, operator, note) => store.moveAside(name, key, operator, note),
    notifyWorkers: () => store.notifyWorkers(),
    stepRedrive: async (plan, operator, note) => {
      if (left === 0) throw new Error('killed')
      left -= 1
      return store.stepRedrive(plan, operator, note)
    },
  }
}

const FAST = { ratePerSecond: null, atOnce: 10 } as const

test('D8 what was killed between two batches goes on where it was: each letter is re-driven once', async () => {
  const { bank, ledger } = await healedBank(30)
  await using _ = bank
  const { redrive } = bank.outbox
  const { id } = await redrive.plan()
  const doomed = createRedrive(killedAfter(bank, 1), systemClock)
  expect(await rejection(doomed.apply(id, { ...KIM, ...FAST }))).toMatchObject({ message: 'killed' })
  expect(await redrive.status(id)).toMatchObject({ state: 'applying', driven: 10, waiting: 20 })
  const end = await redrive.apply(id, { operator: 'Lee', ...FAST })
  expect(end).toMatchObject({ state: 'done', driven: 30, succeeded: 30, appliedBy: 'Lee' })
  expect(ledger.handled.toSorted()).toEqual(
    numbers(30)
      .map((n) => `a:${n}`)
      .toSorted(),
  )
  const retried = (await operatorLog(bank)).filter(({ action }) => action === 'retry')
  expect(retried.filter(({ operator }) => operator === KIM.operator)).toHaveLength(10)
  expect(retried.filter(({ operator }) => operator === 'Lee')).toHaveLength(20)
})

test('D8 a batch and its record are one: where the record cannot be written nothing is re-driven', async () => {
  const { bank } = await healedBank(5)
  await using _ = bank
  const { redrive, deadLetters } = bank.outbox
  const { id } = await redrive.plan()
  await bank.pool.query(`
    create function disk_is_full() returns trigger language plpgsql as
      $$ begin raise exception 'no space left on device' using errcode = '53100'; end $$;
    create trigger disk_is_full before insert on outbox_operator_log for each row
      when (new.action = 'redrive') execute function disk_is_full()`)
  expect(await rejection(redrive.apply(id, { ...KIM, ...FAST }))).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await deadLetters.count()).toBe(5)
  expect(await operatorLog(bank)).toEqual([])
  expect(await redrive.status(id)).toMatchObject({ driven: 0, waiting: 5 })
  await bank.pool.query('drop trigger disk_is_full on outbox_operator_log')
  expect(await redrive.apply(id, { ...KIM, ...FAST })).toMatchObject({ state: 'done', succeeded: 5 })
})

test('D8 two people who apply one plan at the same time do it once', async () => {
  const { bank, ledger } = await healedBank(120)
  await using _ = bank
  const { id } = await bank.outbox.redrive.plan()
  const people = ['Kim', 'Lee', 'Park'].map((operator) =>
    bank.newProcess().redrive.apply(id, { operator, ...FAST }),
  )
  for (const end of await Promise.all(people)) expect(end).toMatchObject({ state: 'done', succeeded: 120 })
  expect(ledger.handled).toHaveLength(120)
  expect(new Set(ledger.handled).size).toBe(120)
  const log = await operatorLog(bank)
  const sum = (action: string): number =>
    log.filter((entry) => entry.action === action).reduce((total, { affected }) => total + affected, 0)
  expect({ retry: sum('retry'), redrive: sum('redrive') }).toEqual({ retry: 120, redrive: 120 })
})

test('D8 what was decided since the plan was made is passed over and counted', async () => {
  const { bank, ledger } = await healedBank(6)
  await using _ = bank
  const { redrive, deadLetters } = bank.outbox
  const { id } = await redrive.plan()
  const [first, second] = await deadLetters.list()
  await deadLetters.resolve(first?.id ?? '', KIM)
  await deadLetters.retry(second?.id ?? '', KIM)
  const end = await redrive.apply(id, { ...KIM, ...FAST })
  expect(end).toMatchObject({ state: 'done', driven: 4, succeeded: 4, waiting: 0 })
  expect(end.skipped).toEqual({ resolved: 2, gone: 0, retired: 0, behind: 0 })
  await bank.untilSettled()
  expect(ledger.handled).toHaveLength(5)
})

test('D8 a plan expires, can be cancelled, and is not found by a wrong number', async () => {
  const { bank } = await healedBank(4)
  await using _ = bank
  const { redrive } = bank.outbox
  const { id } = await redrive.plan()
  await bank.pool.query('update outbox_redrive_plan set expires_at = clock_timestamp()')
  expect(await rejection(redrive.apply(id, KIM))).toMatchObject({
    code: 'INVALID_STATE',
    message: expect.stringContaining('has expired'),
  })
  await bank.pool.query("update outbox_redrive_plan set expires_at = now() - interval '8 days'")
  // Paused, so that the one that may be on its way stays there.
  await bank.outbox.pause('plain', KIM)
  const next = await redrive.plan()
  // The one that nobody began is forgotten with the letters it had listed.
  expect(await bank.count('outbox_redrive_plan')).toBe(1)
  expect(await bank.count('outbox_redrive_item')).toBe(4)
  const applying = redrive.apply(next.id, { ...KIM, ratePerSecond: null, atOnce: 1 })
  await eventually('one is on its way', async () => (await redrive.status(next.id)).driven === 1)
  await redrive.cancel(next.id, { operator: 'Lee' })
  expect(await applying).toMatchObject({ state: 'cancelled', driven: 1, waiting: 3 })
  expect(await rejection(redrive.apply(next.id, KIM))).toMatchObject({ code: 'INVALID_STATE' })
  const cancelled = (await operatorLog(bank)).filter(({ action }) => action === 'redrive-cancel')
  expect(cancelled).toMatchObject([{ operator: 'Lee', affected: 3 }])
  expect(await rejection(redrive.status('404'))).toMatchObject({ code: 'NOT_FOUND' })
  expect(await rejection(redrive.apply('404', KIM))).toMatchObject({ code: 'NOT_FOUND' })
  expect(await rejection(redrive.cancel('404', KIM))).toMatchObject({ code: 'NOT_FOUND' })
})

test('D8 the rate holds by the clock of the database, for all who apply the plan together', async () => {
  const { bank } = await healedBank(3)
  await using _ = bank
  const { id } = await bank.outbox.redrive.plan()
  const store = postgresStore({ pool: bank.pool, schema: bank.schema })
  const settings = { atOnce: 10, stopWhenFailedShare: null, minSample: 1, resume: false }
  await store.beginRedrive(id, 'Kim', { ...settings, ratePerSecond: 0.001 })
  expect(await store.stepRedrive(id, 'Kim', null)).toMatchObject({ driven: 1 })
  const next = await store.stepRedrive(id, 'Lee', null)
  expect(next.driven).toBe(0)
  expect(next.waitMs).toBeGreaterThan(500_000)
})
