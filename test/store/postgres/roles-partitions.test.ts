import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { systemIds } from '../../../src/runtime/ids.ts'
import { partitionTables } from '../../../src/store/postgres/partition-tables.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import { claim, DONE, join, settled } from '../contract/helpers.ts'
import { one, refusal } from './fixtures.ts'
import { proofOn } from './proof-fixtures.ts'
import { PACE, policyOf } from './retention-fixtures.ts'
import { createRolesDatabase, type RolesDatabase } from './role-fixtures.ts'

let db: RolesDatabase

beforeAll(async () => {
  db = await createRolesDatabase()
  await db.pool.query(insertSql, [systemIds.eventId()])
  await partitionTables(db.pool, { schema: db.schema })
})
afterAll(async () => {
  await db.drop()
})

const insertSql = `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
                   values ($1, 'shop.order', 'OrderPlaced', 'order', '1', '{}')`

test('after the conversion a publisher publishes, numbered events too, and does nothing else', async () => {
  const { publisher } = db.as
  await publisher.query(insertSql, [systemIds.eventId()])
  await publisher.query(insertSql.replace('payload)', 'payload, sequence)').replace("'{}')", "'{}', 1)"), [
    systemIds.eventId(),
  ])
  expect(await refusal(publisher.query('select 1 from outbox_event'))).toBe('42501')
  expect(
    await refusal(
      publisher.query(insertSql.replace('outbox_event', 'outbox_event_rest'), [systemIds.eventId()]),
    ),
  ).toBe('42501')
  expect(await refusal(publisher.query('select outbox_tend_partitions()'))).toBe('42501')
})

test('a worker registers, claims, settles, makes partitions ahead and retains, and converts nothing', async () => {
  const worker = new PostgresWorkerStore({ pool: db.as.worker, own: false }, db.quoted, systemClock)
  const sub = await join(worker)
  await db.as.publisher.query(insertSql, [systemIds.eventId()])
  const claimed = await claim(worker, sub, 'w', 10)
  expect(claimed).toHaveLength(1)
  await worker.settle(claimed.map((delivery) => settled(delivery, DONE)))
  const [last] = (await db.pool.query('select max(first_day) as day from outbox_period')).rows as [
    { day: number },
  ]
  await db.pool.query(
    `select outbox_make_period(e, e + 1) from (select max(end_day) as e from outbox_period) p`,
  )
  await db.pool.query('update outbox_partitioning set every = 30')
  expect(await worker.tendPartitions()).toBeGreaterThan(0)
  expect(await one(db.pool, 'select max(first_day) from outbox_period')).toBeGreaterThan(last.day)
  const { retention } = postgresStore({ pool: db.as.worker, schema: db.schema })
  await postgresStore({ pool: db.pool, schema: db.schema }).retention.allowPolicy(policyOf())
  const run = (await retention.beginRetention(policyOf(), 3)) as string
  await retention.stepRetention(run, 'w', PACE, null)
  for (const call of [
    'outbox_prepare_partitions(1)',
    'outbox_convert_to_partitions()',
    'outbox_unpartition()',
    'outbox_make_period(1, 2)',
    'outbox_abandon_partitions()',
  ]) {
    expect(await refusal(db.as.worker.query(`select ${call}`))).toBe('42501')
  }
})

test('a viewer and an operator read all of it by the name of the whole, and doctor finds nothing wrong', async () => {
  for (const pool of [db.as.viewer, db.as.operator]) {
    expect(await one<number>(pool, 'select count(*)::int from outbox_event')).toBeGreaterThan(2)
    await pool.query('select count(*) from outbox_in_hand')
    await pool.query('select last_value from outbox_event_id_seq')
    expect(await refusal(pool.query('delete from outbox_delivery'))).toBe('42501')
  }
  const proof = proofOn(db.as.viewer, db.schema)
  const { findings } = await proof.doctor()
  const codes = findings.filter(({ severity }) => severity !== 'ok').map(({ code }) => code)
  expect(codes).not.toContain('TABLES_UNREADABLE')
  expect(codes).not.toContain('OBJECT_BROKEN')
  expect(codes).not.toContain('RIGHT_SURPLUS')
  expect(findings.find(({ check }) => check === 'partitions')).toMatchObject({ code: 'PARTITIONS_AHEAD' })
  expect((await proof.verify()).holds).toBe(true)
})
