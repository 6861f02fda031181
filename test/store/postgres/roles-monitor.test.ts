import { afterAll, beforeAll, expect, test } from 'vitest'
import { PostgresMonitorStore } from '../../../src/store/postgres/monitor-store.ts'
import { insertEvent, makeDead, refusal, subscribe } from './fixtures.ts'
import { createRolesDatabase, type Job, type RolesDatabase } from './role-fixtures.ts'

let db: RolesDatabase

beforeAll(async () => {
  db = await createRolesDatabase()
  await subscribe(db)
  await makeDead(db, { eventId: await insertEvent(db.pool) })
})
afterAll(async () => {
  await db.drop()
})

const LOOK = { most: 1_001, stuckAfterMs: 300_000, leastForMean: 3, workerMissingMs: 60_000 }
const storeAs = (job: Job): PostgresMonitorStore =>
  new PostgresMonitorStore({ pool: db.as[job], own: false }, db.quoted)

test('a worker may look, tell and write down what was told', async () => {
  const store = storeAs('worker')
  const turn = await store.takeMonitorTurn({
    holder: 'w',
    leaseMs: 60_000,
    everyMs: 0,
    whole: true,
    wholeEveryMs: 0,
  })
  if (turn === null) throw new Error('there is nobody else')
  await store.readFigures(LOOK)
  await store.readOpenLetters(10)
  await store.readAlarms()
  const { ids } = await store.readUntoldLetters(10)
  const alarm = { key: 'dead:sub', rule: 'dead', since: turn.now, told: true, toldAt: turn.now }
  expect(
    await store.recordRound({
      turn,
      alarms: [alarm],
      forgotten: ['gone'],
      toldLetters: ids,
      toldWorkers: ['gone'],
      reported: true,
      position: 1,
    }),
  ).toBe(true)
  expect(await store.readAlarms()).toEqual([alarm])
})

test.each(['viewer', 'operator'] as const)('a %s may look', async (job) => {
  const store = storeAs(job)
  expect((await store.readFigures(LOOK)).subscriptions).toHaveLength(1)
  expect(await store.readOpenLetters(10)).toMatchObject({ count: 1 })
  const asked = store.takeMonitorTurn({ holder: 'v', leaseMs: 1, everyMs: 0, whole: true, wholeEveryMs: 0 })
  await expect(asked).rejects.toMatchObject({ code: 'STORE_REFUSED' })
})

test.each([
  ['worker', 'insert into outbox_monitor default values'],
  ['worker', 'delete from outbox_monitor'],
  ['worker', `update outbox_dead_letter set error_message = ''`],
  ['viewer', 'update outbox_dead_letter set told_at = now()'],
  ['viewer', 'delete from outbox_alarm'],
  ['publisher', 'select * from outbox_alarm'],
  ['publisher', 'select * from outbox_monitor'],
] as const)('a %s cannot: %s', async (job, sql) => {
  expect(await refusal(db.as[job].query(sql))).toBe('42501')
})
