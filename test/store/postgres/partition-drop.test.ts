import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { RegisteredSubscription } from '../../../src/store/subscription-store.ts'
import { uuidV7At } from '../../support/install-tables.ts'
import { claim, dead, join } from '../contract/helpers.ts'
import { column, one } from './fixtures.ts'
import { doneOn, partitionInThePast, partitions, publishedOn } from './partition-fixtures.ts'
import { settle } from './proof-fixtures.ts'
import {
  archiveOf,
  createRetentionDatabase,
  PACE,
  policyOf,
  type RetentionDatabase,
  retain,
} from './retention-fixtures.ts'

const DAY_MS = 86_400_000
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
const holds = async (): Promise<boolean> => (await db.proof.verify()).holds
const periods = async (): Promise<number> => (await partitions(db, 'outbox_event')).length
const drops = (): Promise<number> =>
  one(db.pool, `select count(*)::int from outbox_operator_log where target ? 'droppedUntil'`)

/** One step of a run that is under way; the other half of a test's interleaving is between two of them. */
async function begin(): Promise<() => Promise<string>> {
  const runId = (await db.retention.beginRetention(policyOf(THREE_DAYS), null)) as string
  const act = { operator: 'kim', note: null }
  return async () => (await db.retention.stepRetention(runId, 'test', PACE, act)).state
}

describe('a period whose end lies before the cutoff', () => {
  test('is dropped with all that is in it, and what is younger stays', async () => {
    const old = [
      ...(await publishedOn(db, { daysAgo: 10, count: 300 })),
      ...(await publishedOn(db, { daysAgo: 6, count: 200 })),
    ]
    const young = await publishedOn(db, { daysAgo: 1, count: 3 })
    await doneOn(db, [...old, ...young], 4)
    const before = await periods()
    expect(await holds()).toBe(true)
    expect(await retain(db, THREE_DAYS)).toEqual({ deleted: 500, archived: 0 })
    expect(await left()).toEqual(young)
    expect(await periods()).toBe(before - 7)
    expect((await partitions(db, 'outbox_delivery')).length).toBe(before - 7)
    expect(await one(db.pool, 'select sum(affected)::int from outbox_operator_log')).toBe(500)
    expect(await one(db.pool, 'select deleted::int from outbox_retention_run')).toBe(500)
    expect(await holds()).toBe(true)
  })

  test('is dropped once its stragglers are moved, and these are delivered afterwards', async () => {
    const done = await publishedOn(db, { daysAgo: 10, count: 100 })
    const waiting = await publishedOn(db, { daysAgo: 10, count: 2 })
    await doneOn(db, done, 5)
    expect(await retain(db, THREE_DAYS)).toEqual({ deleted: 100, archived: 0 })
    expect(await left()).toEqual(waiting)
    expect(await drops()).toBe(1)
    expect(await column(db.pool, `select tableoid::regclass::text from outbox_event`)).toEqual([
      'outbox_event_rest',
      'outbox_event_rest',
    ])
    expect(await holds()).toBe(true)
    const claimed = await claim(db.worker, sub, 'w', 10)
    expect(claimed.map(({ event }) => event.eventId)).toEqual(waiting)
    await doneOn(db, waiting, 5)
    expect(await retain(db, THREE_DAYS)).toEqual({ deleted: 2, archived: 0 })
  })

  test('keeps what is dead, what another policy has, and what was done too late', async () => {
    const done = await publishedOn(db, { daysAgo: 10, count: 50 })
    await doneOn(db, done, 5)
    const letter = await publishedOn(db, { daysAgo: 10, count: 1 })
    await settle(db, sub, 1, dead)
    const other = await publishedOn(db, { daysAgo: 10, count: 2, stream: 'ledger.posting' })
    const late = await publishedOn(db, { daysAgo: 10, count: 1 })
    await doneOn(db, other, 5)
    await doneOn(db, late, 1)
    expect(await retain(db, { ...THREE_DAYS, before: ['ledger.*'] })).toEqual({ deleted: 50, archived: 0 })
    expect(await drops()).toBe(1)
    expect(new Set(await left())).toEqual(new Set([...letter, ...other, ...late]))
    expect(await holds()).toBe(true)
    const id = await one<string>(db.pool, 'select id from outbox_dead_letter')
    await db.pool.query(`select outbox_retry($1, 'kim')`, [id])
    expect((await claim(db.worker, sub, 'w', 10)).map(({ event }) => event.eventId)).toEqual(letter)
  })

  test('is not dropped where more than ten thousand would stay: its rows go one by one', async () => {
    const done = await publishedOn(db, { daysAgo: 10, count: 20 })
    await doneOn(db, done, 5)
    const many = await publishedOn(db, { daysAgo: 10, count: 10_001 })
    expect(await retain(db, THREE_DAYS, 2_000)).toEqual({ deleted: 20, archived: 0 })
    expect(await drops()).toBe(0)
    expect(await left()).toHaveLength(many.length)
  })

  test('is not dropped by a policy that archives before the run that finds it empty', async () => {
    const old = await publishedOn(db, { daysAgo: 10, count: 10 })
    await doneOn(db, old, 5)
    const policy = { ...THREE_DAYS, policy: 'keep', archive: archiveOf(db) }
    const before = await periods()
    expect(await retain(db, policy)).toEqual({ deleted: 0, archived: 10 })
    expect(await retain(db, policy)).toEqual({ deleted: 0, archived: 0 })
    expect(await periods()).toBe(before - 7)
    expect(await one(db.pool, 'select count(*)::int from kept_events')).toBe(10)
    expect(await holds()).toBe(true)
  })
})

describe('between the look at a period and its drop', () => {
  const surveyed = async (): Promise<void> => {
    const run = await one<string>(db.pool, 'select id from outbox_retention_run where finished_at is null')
    await db.pool.query('select outbox_survey_period($1)', [run])
  }

  test('what is published with an old id, or an old position, is not lost', async () => {
    await doneOn(db, await publishedOn(db, { daysAgo: 10, count: 10 }), 5)
    const step = await begin()
    const early = await db.pool.connect()
    await early.query('begin')
    const oldPosition = uuidV7At(Date.now())
    await early.query(
      `insert into outbox_event (event_id, id, stream, event_type, aggregate_type, aggregate_id, payload)
       overriding system value
       select $1, outbox_first_position(outbox_day_of(now()) - 9), 'shop.order', 'OrderPlaced', 'order', '1', '{}'`,
      [oldPosition],
    )
    await surveyed()
    await early.query('commit')
    early.release()
    const oldId = uuidV7At(Date.now() - 9 * DAY_MS)
    await db.pool.query(
      `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
       values ($1, 'shop.order', 'OrderPlaced', 'order', '1', '{}')`,
      [oldId],
    )
    for (let state = await step(); state !== 'done'; state = await step());
    expect(await drops()).toBe(1)
    expect(new Set(await left())).toEqual(new Set([oldPosition, oldId]))
    expect(await holds()).toBe(true)
    const claimed = await claim(db.worker, sub, 'w', 10)
    expect(new Set(claimed.map(({ event }) => event.eventId))).toEqual(new Set([oldPosition, oldId]))
  })

  test('a subscription that registers from the beginning gets all of it: it is looked at again', async () => {
    const old = await publishedOn(db, { daysAgo: 10, count: 10 })
    await doneOn(db, old, 5)
    const step = await begin()
    await surveyed()
    const newcomer = await join(db.worker, { name: 'newcomer', startFrom: 'beginning' })
    for (let state = await step(); state !== 'done'; state = await step());
    expect(await left()).toEqual(old)
    expect(await claim(db.worker, newcomer, 'w', 100)).toHaveLength(10)
    expect(await holds()).toBe(true)
  })

  test('somebody who uses the tables is not waited for: the run tries again', async () => {
    await doneOn(db, await publishedOn(db, { daysAgo: 10, count: 10 }), 5)
    const step = await begin()
    const client = await db.pool.connect()
    await client.query('begin')
    await client.query('select count(*) from outbox_event')
    expect(await step()).toBe('busy')
    expect(await left()).toHaveLength(10)
    await client.query('commit')
    client.release()
    expect(await step()).toBe('running')
    expect(await left()).toEqual([])
  })
})
