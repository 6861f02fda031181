import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { partitionSql } from '../../../src/store/postgres/partition-steps.ts'
import { partitionTables } from '../../../src/store/postgres/partition-tables.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import { eventually } from '../../support/program.ts'
import { claim, DONE, join, settled } from '../contract/helpers.ts'
import { column, createOutboxDatabase, type OutboxDatabase, one, refusal } from './fixtures.ts'
import { insert, isDayNearlyOver, partitions, today } from './partition-fixtures.ts'

const DAY_MS = 86_400_000

let db: OutboxDatabase

beforeEach(async ({ skip }) => {
  db = await createOutboxDatabase()
  skip(await isDayNearlyOver(db), 'a day begins soon')
})
afterEach(async () => {
  await db.drop()
})

const convert = (everyDays = 1) => partitionTables(db.pool, { schema: db.schema, everyDays })
const kinds = (): Promise<string[]> =>
  column(
    db.pool,
    `select c.relname || ' ' || c.relkind::text from pg_class c
      where c.relnamespace = $1::regnamespace and c.relname in ('outbox_event', 'outbox_delivery') order by 1`,
    [db.schema],
  )
const PLAIN = ['outbox_delivery r', 'outbox_event r']
const PARTITIONED = ['outbox_delivery p', 'outbox_event p']

describe('empty tables', () => {
  test('are partitioned from the present period on, with a week ahead', async () => {
    const report = await convert()
    const day = await today(db)
    expect(report).toEqual({
      converted: true,
      everyDays: 1,
      restUntil: new Date(day * DAY_MS),
      madeUntil: new Date((day + 8) * DAY_MS),
    })
    expect(await kinds()).toEqual(PARTITIONED)
    await insert(db.pool)
    expect(await one(db.pool, 'select id::text from outbox_event')).toBe(`${day}0000000000`)
  })

  test('are converted once, whoever else does it at the same time', async () => {
    const reports = await Promise.all([convert(), convert(), convert()])
    expect(reports.filter(({ converted }) => converted)).not.toHaveLength(0)
    expect(await partitions(db, 'outbox_event')).toHaveLength(9)
    expect((await convert()).converted).toBe(false)
  })

  test('take another length for the periods to come', async () => {
    await convert(1)
    const report = await convert(7)
    expect(report.converted).toBe(false)
    expect(report.everyDays).toBe(7)
    expect(report.madeUntil.getTime() - Date.now()).toBeGreaterThan(21 * DAY_MS)
  })
})

describe('tables that are full', () => {
  test('become the rest, and positions go on', async () => {
    const worker = new PostgresWorkerStore({ pool: db.pool, own: false }, db.quoted, systemClock)
    const sub = await join(worker)
    for (let n = 0; n < 5; n += 1) await insert(db.pool)
    const report = await convert()
    expect(report.converted).toBe(true)
    expect(report.restUntil.getTime()).toBeGreaterThan(Date.now() + DAY_MS)
    await insert(db.pool)
    expect(await column(db.pool, 'select id::int from outbox_event order by id')).toEqual([1, 2, 3, 4, 5, 6])
    const claimed = await claim(worker, sub, 'w', 10)
    expect(claimed).toHaveLength(6)
    await worker.settle(claimed.map((delivery) => settled(delivery, DONE)))
    expect(await column(db.pool, 'select distinct status from outbox_delivery')).toEqual(['DONE'])
    expect(await one(db.pool, `select count(*)::int from pg_constraint where conname like '%\\_until'`)).toBe(
      0,
    )
  })

  test('keep what hangs on them: rights, views, triggers, indexes of others', async () => {
    const role = `${db.schema}_reader`
    await db.pool.query(`create role ${role}`)
    await db.pool.query(`
      create table heard (at timestamptz default now());
      create function hear() returns trigger language plpgsql as
        'begin insert into ${db.schema}.heard default values; return null; end';
      create trigger mine after insert on outbox_event for each statement execute function hear();
      create index mine on outbox_event (stream);
      create view mine_too as select event_id, payload from outbox_event;
      grant select on mine_too, outbox_delivery to ${role} with grant option;
      grant select (event_id), insert (stream) on outbox_event to ${role};
      grant usage on sequence outbox_event_id_seq to ${role};`)
    const rights = () =>
      column(
        db.pool,
        `select concat_ws(' ', table_name, privilege_type, is_grantable) from information_schema.role_table_grants
          where grantee = $1
         union all select concat_ws(' ', table_name, column_name, privilege_type) from information_schema.column_privileges
          where grantee = $1 and table_name = 'outbox_event'
         union all select has_sequence_privilege($1, 'outbox_event_id_seq', 'usage')::text order by 1`,
        [role],
      )
    await insert(db.pool)
    const before = await rights()
    expect(before.length).toBeGreaterThan(4)
    await convert()
    await insert(db.pool)
    expect(await rights()).toEqual(before)
    expect(await one(db.pool, 'select count(*)::int from heard')).toBe(2)
    expect(await one(db.pool, 'select count(*)::int from mine_too')).toBe(2)
    expect(await one(db.pool, `select relkind from pg_class where oid = 'mine'::regclass`)).toBe('I')
    await db.pool.query(`drop owned by ${role}; drop role ${role}`)
  })

  test('are left as they are where ids do not fit, and the ids are named', async () => {
    const random = [randomUUID(), 'f0000000-0000-4000-8000-000000000000']
    for (const id of random) await insert(db.pool, id.replace(/^./, 'f'))
    await insert(db.pool)
    await expect(convert()).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringMatching(/2 event\(s\).*f0000000-0000-4000-8000-000000000000/s),
    })
    expect(await kinds()).toEqual(PLAIN)
    expect(await column(db.pool, 'select state from outbox_partitioning')).toEqual([])
    await insert(db.pool, randomUUID())
  })

  test.each([
    ['a publication', 'create publication cp_PUB for table outbox_event', 'drop publication cp_PUB'],
    ['a foreign key', 'create table mine (id uuid references outbox_event (event_id))', 'drop table mine'],
    ['a policy', 'create policy mine on outbox_delivery using (true)', 'drop policy mine on outbox_delivery'],
  ])('are left as they are where %s hangs on them', async (_, make, remove) => {
    await insert(db.pool)
    await db.pool.query(make.replaceAll('PUB', db.schema))
    await expect(convert()).rejects.toMatchObject({ code: 'INVALID_STATE' })
    expect(await kinds()).toEqual(PLAIN)
    await db.pool.query(remove.replaceAll('PUB', db.schema))
    expect((await convert()).converted).toBe(true)
  })

  test('are taken up where an interrupted conversion left them', async () => {
    await insert(db.pool)
    const steps = partitionSql({ schema: db.schema })
      .split('\n')
      .filter((line) => line.startsWith('select'))
    for (const step of steps.slice(0, 2)) await db.pool.query(step)
    const [layout] = await column(db.pool, 'select rest_until from outbox_partitioning')
    expect(await refusal(insert(db.pool, randomUUID().replace(/^./, 'f')))).toBe('23514')
    expect((await convert()).converted).toBe(true)
    expect(await column(db.pool, 'select rest_until from outbox_partitioning')).toEqual([layout])
  })

  test('are let be by the next worker where an interrupted conversion would refuse events soon', async () => {
    await insert(db.pool)
    await db.pool.query('select outbox_prepare_partitions(1)')
    await db.pool.query('update outbox_partitioning set rest_until = outbox_day_of(now())')
    await db.pool.query('select outbox_tend_partitions()')
    expect(await column(db.pool, 'select 1 from outbox_partitioning')).toEqual([])
    expect(await refusal(insert(db.pool, randomUUID()))).toBe(null)
  })

  test('are read through while everybody goes on', async () => {
    await insert(db.pool)
    await db.pool.query('select outbox_prepare_partitions(1)')
    const reading = await db.pool.connect()
    await reading.query('begin')
    await reading.query(
      `select outbox_validate_partitions('outbox_event'), outbox_validate_partitions('outbox_delivery')`,
    )
    await insert(db.pool)
    await reading.query('commit')
    reading.release()
    expect((await convert()).converted).toBe(true)
    expect(await one(db.pool, 'select count(*)::int from outbox_event')).toBe(2)
  })

  test('wait for whoever uses them, and others do not wait for that', async () => {
    await insert(db.pool)
    const user = await db.pool.connect()
    await user.query('begin')
    await user.query('select count(*) from outbox_event')
    const converting = convert()
    const waits = `select count(*)::int from pg_locks l join pg_database d on d.oid = l.database
                    where d.datname = current_database() and not l.granted and l.relation = 'outbox_event'::regclass`
    await eventually('it waits for the lock', async () => (await one<number>(db.pool, waits)) > 0)
    await insert(db.pool)
    expect(await kinds()).toEqual(PLAIN)
    await user.query('commit')
    user.release()
    expect((await converting).converted).toBe(true)
  })

  test('are converted by the printed statements too', async () => {
    await insert(db.pool)
    for (const statement of partitionSql({ schema: db.schema, everyDays: 2 }).split('\n')) {
      if (statement.startsWith('select')) await db.pool.query(statement)
    }
    expect(await kinds()).toEqual(PARTITIONED)
  })
})
