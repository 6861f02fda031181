import { afterEach, beforeEach, expect, test } from 'vitest'
import { announceRegistration } from '../../../src/store/postgres/announce-registration.ts'
import type { RegisteredSubscription } from '../../../src/store/subscription-store.ts'
import { claim, join, untilActive } from '../contract/helpers.ts'
import { column, inTransaction, one } from './fixtures.ts'
import { doneOn, partitionInThePast, partitions, publishedOn } from './partition-fixtures.ts'
import { createRetentionDatabase, PACE, policyOf, type RetentionDatabase } from './retention-fixtures.ts'

const THREE_DAYS = { keepSeconds: 3 * 86_400 }

let db: RetentionDatabase
let sub: RegisteredSubscription
beforeEach(async () => {
  db = await createRetentionDatabase()
  await partitionInThePast(db, 10)
  sub = await join(db.worker)
})
afterEach(async () => {
  await db.drop()
})

const left = (): Promise<string[]> => column(db.pool, 'select event_id from outbox_event order by id')
const drops = (): Promise<number> =>
  one(db.pool, `select count(*)::int from outbox_operator_log where target ? 'droppedUntil'`)

async function begin(): Promise<() => Promise<string>> {
  const runId = (await db.retention.beginRetention(policyOf(THREE_DAYS), null)) as string
  const act = { operator: 'kim', note: null }
  return async () => (await db.retention.stepRetention(runId, 'test', PACE, act)).state
}
const surveyed = async (): Promise<void> => {
  const run = await one<string>(db.pool, 'select id from outbox_retention_run where finished_at is null')
  await db.pool.query('select outbox_survey_period($1)', [run])
}
async function untilDone(step: () => Promise<string>, most = 40): Promise<number> {
  for (let n = 1; n <= most; n += 1) if ((await step()) === 'done') return n
  throw new Error(`not done after ${most} steps`)
}

test('a subscription that had announced itself and not committed when the survey looked loses nothing', async () => {
  const old = await publishedOn(db, { daysAgo: 10, count: 10 })
  await doneOn(db, old, 5)
  const step = await begin()
  const registering = await db.pool.connect()
  await registering.query('begin')
  await registering.query('select outbox_lock_registry()')
  await announceRegistration(registering, db.quoted)
  await registering.query(`
    insert into outbox_subscription (name, order_by, lanes, on_dead, max_attempts, start_from, state, joined_snapshot)
    values ('newcomer', 'none', 0, 'block', 3, 'beginning', 'joining', pg_current_snapshot())`)
  await surveyed()
  await registering.query('commit')
  registering.release()
  await untilActive(db.worker)
  const newcomer = (await db.worker.subscriptions([sub.id + 1]))[0] as RegisteredSubscription
  expect(newcomer.name).toBe('newcomer')
  expect(await one(db.pool, `select count(*)::int from outbox_delivery where status = 'PENDING'`)).toBe(10)
  await untilDone(step)
  expect(await left()).toEqual(old)
  expect(await claim(db.worker, newcomer, 'w', 100)).toHaveLength(10)
})

test('events of another server, from a restored backup, are dropped like all others', async () => {
  const old = await publishedOn(db, { daysAgo: 10, count: 10_050 })
  await doneOn(db, old, 5)
  await inTransaction(db, async (client) => {
    await client.query('set local session_replication_role = replica')
    await client.query(`alter table outbox_event disable trigger outbox_event_immutable`)
    await client.query(`update outbox_event set xid = (xid::text::bigint + 1000000000)::text::xid8`)
    await client.query(`alter table outbox_event enable trigger outbox_event_immutable`)
  })
  const step = await begin()
  await untilDone(step)
  expect(await left()).toEqual([])
  expect(await one(db.pool, 'select deleted::int from outbox_retention_run')).toBe(old.length)
})

test('a vacuum of the partition of today keeps no period from being dropped', async () => {
  await doneOn(db, await publishedOn(db, { daysAgo: 10, count: 10 }), 5)
  const live = (await partitions(db, 'outbox_delivery')).at(-8) as string
  const vacuum = await db.pool.connect()
  await vacuum.query('begin')
  await vacuum.query(`lock table ${live} in share update exclusive mode`)
  const step = await begin()
  const state = await step()
  await vacuum.query('commit')
  vacuum.release()
  expect(state).toBe('running')
  expect(await drops()).toBe(1)
})

test('a period that somebody has a view of goes row by row', async () => {
  await doneOn(db, await publishedOn(db, { daysAgo: 10, count: 10 }), 5)
  const [, first] = await partitions(db, 'outbox_event')
  await db.pool.query(`create view mine as select * from ${first}`)
  await untilDone(await begin())
  expect(await left()).toEqual([])
})

test('what somebody who reads the log has not come to stays', async () => {
  const old = await publishedOn(db, { daysAgo: 10, count: 10 })
  await doneOn(db, old, 5)
  await db.pool.query(
    `insert into outbox_stream (subscription_id, slot, snapshot)
     select $1, 'none', (min(e.xid::text::bigint) || ':' || min(e.xid::text::bigint) || ':')::pg_snapshot
       from outbox_event e`,
    [sub.id],
  )
  await untilDone(await begin())
  expect(await left()).toEqual(old)
  await db.pool.query('update outbox_stream set snapshot = pg_current_snapshot()')
  await untilDone(await begin())
  expect(await left()).toEqual([])
})
