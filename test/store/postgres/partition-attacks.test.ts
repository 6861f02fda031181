import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { partitionSql } from '../../../src/store/postgres/partition-steps.ts'
import { partitionTables } from '../../../src/store/postgres/partition-tables.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import { claim, DONE, join, settled } from '../contract/helpers.ts'
import { column, createOutboxDatabase, type OutboxDatabase, one, refusal } from './fixtures.ts'
import { insert, isDayNearlyOver, today } from './partition-fixtures.ts'
import { proofOn } from './proof-fixtures.ts'

const WEEK_MS = 7 * 86_400_000

let db: OutboxDatabase
let worker: PostgresWorkerStore

beforeEach(async ({ skip }) => {
  db = await createOutboxDatabase()
  skip(await isDayNearlyOver(db), 'a day begins soon')
  worker = new PostgresWorkerStore({ pool: db.pool, own: false }, db.quoted, systemClock)
})
afterEach(async () => {
  await db.drop()
})

const convert = () => partitionTables(db.pool, { schema: db.schema })
const steps = (): readonly string[] =>
  partitionSql({ schema: db.schema })
    .split('\n')
    .filter((line) => line.startsWith('select'))
const holds = async (): Promise<boolean> => (await proofOn(db.pool, db.schema).verify()).holds
const events = (): Promise<number> => one(db.pool, 'select count(*)::int from outbox_event')

/** Runs a step on a connection that is lost before it can commit. */
async function lose(sql: string): Promise<void> {
  const client = await db.pool.connect()
  client.on('error', () => undefined)
  await client.query('begin')
  await client.query(sql)
  const pid = await one<number>(client, 'select pg_backend_pid()')
  await db.pool.query('select pg_terminate_backend($1)', [pid])
  client.release(true)
}

describe('a conversion that is lost', () => {
  const places = [0, 1, 2, 3, 4].flatMap((step) => [
    { step, when: 'before', isLost: true },
    { step, when: 'after', isLost: false },
  ])

  test.each(places)(
    '$when the commit of step $step leaves tables that work, and the next one finishes it',
    async ({ step, isLost }) => {
      const sub = await join(worker)
      await insert(db.pool)
      const all = steps()
      expect(all).toHaveLength(5)
      for (const sql of all.slice(0, step)) await db.pool.query(sql)
      if (isLost) await lose(all[step] as string)
      else await db.pool.query(all[step] as string)
      expect(await refusal(insert(db.pool))).toBeNull()
      expect(await holds()).toBe(true)
      const { madeUntil } = await convert()
      expect(madeUntil.getTime()).toBeGreaterThan(Date.now() + WEEK_MS)
      await insert(db.pool)
      const claimed = await claim(worker, sub, 'w', 10)
      expect(claimed).toHaveLength(3)
      await worker.settle(claimed.map((delivery) => settled(delivery, DONE)))
      expect(await events()).toBe(3)
      expect(await holds()).toBe(true)
    },
  )
})

describe('tables with events', () => {
  test('are converted once by several at a time, while others publish and deliver', async () => {
    const sub = await join(worker)
    for (let n = 0; n < 50; n += 1) await insert(db.pool)
    let isOver = false
    let published = 50
    const publishing = Promise.all(
      [1, 2].map(async () => {
        while (!isOver) {
          await insert(db.pool)
          published += 1
        }
      }),
    )
    const reports = await Promise.all([convert(), convert(), convert()])
    isOver = true
    await publishing
    expect(reports.filter(({ converted }) => converted)).not.toHaveLength(0)
    expect(await events()).toBe(published)
    const claimed = await claim(worker, sub, 'w', published + 1)
    expect(claimed).toHaveLength(published)
    await worker.settle(claimed.map((delivery) => settled(delivery, DONE)))
    expect(await holds()).toBe(true)
  })

  test('are published to by a transaction whose snapshot is older than the conversion', async () => {
    const sub = await join(worker)
    await insert(db.pool)
    const old = await db.pool.connect()
    await old.query('begin isolation level repeatable read')
    await old.query('select 1 from pg_class limit 1')
    await convert()
    await insert(old)
    expect(await one(old, 'select count(*)::int from outbox_event')).toBe(2)
    await old.query('commit')
    old.release()
    expect(await claim(worker, sub, 'w', 10)).toHaveLength(2)
    expect(await holds()).toBe(true)
  })
})

describe('a clock of the database', () => {
  /** Workers tend the partitions while the clock is so many days off. */
  async function tendOff(days: number): Promise<void> {
    const definition = await one<string>(
      db.pool,
      `select pg_get_functiondef('outbox_tend_partitions'::regproc)`,
    )
    await db.pool.query(
      definition.replaceAll('clock_timestamp()', `(clock_timestamp() + interval '${days} days')`),
    )
    await db.pool.query('select outbox_tend_partitions()')
    await db.pool.query(definition)
    await db.pool.query('select outbox_tend_partitions()')
  }

  test.each([-40, 40])('that was %i days off for a while loses nothing, and refuses nobody', async (days) => {
    const sub = await join(worker)
    await convert()
    await insert(db.pool)
    await tendOff(days)
    await insert(db.pool)
    const claimed = await claim(worker, sub, 'w', 10)
    expect(claimed).toHaveLength(2)
    await worker.settle(claimed.map((delivery) => settled(delivery, DONE)))
    const [first, second] = await column<string>(db.pool, 'select id from outbox_event order by created_at')
    expect(BigInt(second as string)).toBeGreaterThan(BigInt(first as string))
    expect(await holds()).toBe(true)
  })
})

describe('the doctor', () => {
  const found = async (): Promise<object | undefined> =>
    (await proofOn(db.pool, db.schema).doctor()).findings.find(({ check }) => check === 'partitions')

  test('tells when there are partitions for less than a period, and by when they are needed', async () => {
    await convert()
    expect(await found()).toMatchObject({ code: 'PARTITIONS_AHEAD', severity: 'ok', advice: null })
    await db.pool.query('delete from outbox_period where first_day >= $1', [(await today(db)) + 1])
    expect(await found()).toMatchObject({
      code: 'PARTITIONS_SHORT',
      severity: 'problem',
      facts: { daysAhead: 0 },
      message: expect.stringContaining('what is published from then on is refused'),
      advice: expect.stringContaining('commitpost migrate partition'),
    })
  })

  const codes = async (): Promise<readonly string[]> =>
    (await proofOn(db.pool, db.schema).doctor()).findings
      .filter(({ check }) => check === 'partitions')
      .map(({ code }) => code)

  test('tells of a partition that was dropped or detached, until it is there again as the docs say', async () => {
    await convert()
    const day = await today(db)
    const [name, detached] = await column<string>(
      db.pool,
      `select t || to_char(outbox_start_of($1) at time zone 'UTC', '_YYYYMMDD')
         from unnest(array['outbox_event', 'outbox_delivery']) t`,
      [day],
    )
    await db.pool.query(`drop table ${name}`)
    await db.pool.query(`alter table outbox_delivery detach partition ${detached}`)
    expect(await refusal(insert(db.pool))).not.toBeNull()
    expect(await found()).toMatchObject({
      code: 'PARTITIONS_MISSING',
      severity: 'problem',
      facts: { partitions: [detached, name] },
    })
    await db.pool.query(
      `create table ${name} (like outbox_event including all excluding identity excluding indexes);
       select outbox_dress_partition('outbox_event', '${name}')`,
    )
    for (const [table, partition] of [
      ['outbox_event', name],
      ['outbox_delivery', detached],
    ]) {
      await db.pool.query(
        `do $$ begin execute format('alter table ${table} attach partition ${partition} for values from (%s) to (%s)',
           outbox_bound('${table}', ${day}), outbox_bound('${table}', ${day} + 1)); end $$`,
      )
    }
    expect(await codes()).toEqual(['PARTITIONS_AHEAD'])
    expect(await refusal(insert(db.pool))).toBeNull()
  })

  test('tells of a partition that nobody here made', async () => {
    await convert()
    await db.pool.query('create table outbox_event_other partition of outbox_event default')
    expect(await found()).toMatchObject({
      code: 'PARTITIONS_UNEXPECTED',
      severity: 'warning',
      facts: { partitions: ['outbox_event_other'] },
    })
  })

  test('tells of a conversion that somebody began and did not finish', async () => {
    await insert(db.pool)
    expect(await found()).toBeUndefined()
    await db.pool.query(steps()[0] as string)
    expect(await found()).toMatchObject({
      code: 'PARTITIONING_UNFINISHED',
      severity: 'warning',
      advice: expect.stringContaining('commitpost migrate partition'),
    })
  })
})
