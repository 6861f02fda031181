import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { systemIds } from '../../../src/runtime/ids.ts'
import { NoPartitionError } from '../../../src/runtime/no-partition-error.ts'
import { insertEvents } from '../../../src/store/postgres/insert-events.ts'
import { partitionTables } from '../../../src/store/postgres/partition-tables.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import { uuidV7At } from '../../support/install-tables.ts'
import { claimLanes, DONE, join, settled, takeLanes } from '../contract/helpers.ts'
import {
  column,
  createOutboxDatabase,
  inRolledBack,
  newEvent,
  type OutboxDatabase,
  one,
  refusal,
} from './fixtures.ts'
import {
  insert,
  isDayNearlyOver,
  partitionInThePast,
  partitions,
  publishedOn,
  today,
} from './partition-fixtures.ts'

const DAY_MS = 86_400_000

let db: OutboxDatabase

beforeEach(async ({ skip }) => {
  db = await createOutboxDatabase()
  skip(await isDayNearlyOver(db), 'a day begins soon')
})
afterEach(async () => {
  await db.drop()
})

const convert = () => partitionTables(db.pool, { schema: db.schema })

describe('partitioned tables', () => {
  test('have primary keys with the room that claims need, as a plain table has', async () => {
    const storage = () =>
      column(
        db.pool,
        `select distinct array_to_string(c.reloptions, ' ')
           from pg_index x join pg_class c on c.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
          where x.indisprimary and c.relkind = 'i' and t.relname like 'outbox\\_delivery%'
            and t.relnamespace = $1::regnamespace`,
        [db.schema],
      )
    const before = await storage()
    expect(before).toEqual(['fillfactor=45'])
    await convert()
    expect(await storage()).toEqual(before)
  })

  test('become plain again with all that they had', async () => {
    const definitions = () =>
      column(
        db.pool,
        `select indexdef from pg_indexes where schemaname = $1
         union all select concat_ws(' ', c.relname, c.relkind, c.reloptions, c.relacl) from pg_class c
                    where c.relnamespace = $1::regnamespace
         union all select pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
                    where c.relnamespace = $1::regnamespace and not t.tgisinternal
         union all select concat_ws(' ', table_name, column_name, column_default, is_nullable, is_identity, generation_expression)
                     from information_schema.columns where table_schema = $1 order by 1`,
        [db.schema],
      )
    const before = await definitions()
    await insert(db.pool)
    await convert()
    await insert(db.pool)
    expect(await one(db.pool, 'select outbox_unpartition()')).toBe(true)
    await insert(db.pool)
    expect(await definitions()).toEqual(before)
    expect(await column(db.pool, 'select id::int from outbox_event order by id')).toEqual([1, 2, 3])
    expect((await convert()).converted).toBe(true)
  })

  test('refuse an id that has no partition, with an error that says what to do', async () => {
    await convert()
    const eventId = 'f0000000-0000-4000-8000-000000000000'
    expect(await refusal(insert(db.pool, eventId))).toBe('23514')
    const refused = await inRolledBack(db, async (client) =>
      insertEvents(client, db.quoted, [newEvent({ eventId })], { onDuplicate: 'error' }).catch(
        (error: unknown) => error,
      ),
    )
    expect(refused).toBeInstanceOf(NoPartitionError)
    expect(refused).toMatchObject({ code: 'NO_PARTITION', eventIds: [eventId] })
    await insert(db.pool, uuidV7At(Date.now() - 400 * DAY_MS))
    expect(await one(db.pool, 'select tableoid::regclass::text from outbox_event')).toBe('outbox_event_rest')
  })

  test('refuse the same id twice, whichever the partition', async () => {
    await convert()
    const eventId = systemIds.eventId()
    await insert(db.pool, eventId)
    expect(await refusal(insert(db.pool, eventId))).toBe('23505')
  })

  test('refuse whoever names a partition, where no deliveries would be made', async () => {
    await convert()
    const sql = `insert into outbox_event_rest (event_id, id, stream, event_type, aggregate_type, aggregate_id, payload)
                 overriding system value values ('00000000-0000-7000-8000-000000000000', 1, 's', 't', 'a', '1', '{}')`
    expect(await refusal(db.pool.query(sql))).toBe('55000')
    expect(await refusal(db.pool.query('truncate outbox_delivery_rest'))).toBe('55000')
    expect(await refusal(db.pool.query('update outbox_event set stream = stream'))).toBe('55000')
    expect(await refusal(db.pool.query('delete from outbox_event'))).toBe('55000')
  })

  test('get the next periods made by one of many workers, while others publish', async () => {
    await convert()
    const day = await today(db)
    await db.pool.query(`drop table ${(await partitions(db, 'outbox_event')).slice(2).join(', ')}`)
    await db.pool.query(`drop table ${(await partitions(db, 'outbox_delivery')).slice(2).join(', ')}`)
    await db.pool.query('delete from outbox_period where first_day > $1', [day])
    const publishing = Promise.all(Array.from({ length: 40 }, () => insert(db.pool)))
    const made = await Promise.all(
      Array.from({ length: 8 }, () => one<number>(db.pool, 'select outbox_tend_partitions()')),
    )
    await publishing
    expect(made.reduce((sum, count) => sum + count, 0)).toBe(7)
    expect(await partitions(db, 'outbox_delivery')).toHaveLength(9)
    expect(await one(db.pool, 'select count(*)::int from outbox_event')).toBe(40)
  })

  test('give positions of the day from when it begins, and never go back', async () => {
    await partitionInThePast(db, 3)
    const day = await today(db)
    const last = () => one<string>(db.pool, 'select last_value::text from outbox_event_id_seq')
    await db.pool.query(`select setval('outbox_event_id_seq', outbox_first_position($1) + 5)`, [day - 1])
    await db.pool.query('select outbox_tend_partitions()')
    expect(await last()).toBe(String(BigInt(day) * 10_000_000_000n - 1n))
    await insert(db.pool)
    await db.pool.query('select outbox_tend_partitions()')
    expect(await last()).toBe(String(BigInt(day) * 10_000_000_000n))
  })

  test('are one period for a time in which nobody made any', async () => {
    await convert()
    const day = await today(db)
    await db.pool.query(`drop table ${(await partitions(db, 'outbox_event')).slice(1).join(', ')}`)
    await db.pool.query(`drop table ${(await partitions(db, 'outbox_delivery')).slice(1).join(', ')}`)
    await db.pool.query('delete from outbox_period')
    for (const table of ['outbox_event', 'outbox_delivery']) {
      await db.pool.query(`alter table ${table} detach partition ${table}_rest`)
      await db.pool.query(
        `do $$ begin execute format('alter table ${table} attach partition ${table}_rest for values from (minvalue) to (%s)',
           ${db.schema}.outbox_bound('${table}', ${day - 100})); end $$`,
      )
    }
    await db.pool.query('update outbox_partitioning set rest_until = $1', [day - 100])
    await db.pool.query('select outbox_tend_partitions()')
    expect(await one(db.pool, 'select end_day from outbox_period order by first_day limit 1')).toBe(day)
    await insert(db.pool, uuidV7At(Date.now() - 50 * DAY_MS))
  })

  test('deliver what stands in several of them in the order of its key', async () => {
    await partitionInThePast(db, 3)
    const worker = new PostgresWorkerStore({ pool: db.pool, own: false }, db.quoted, systemClock)
    const sub = await join(worker, { orderBy: 'aggregate', lanes: 1 })
    const published: string[] = []
    for (const daysAgo of [3, 2, 1, 0]) published.push(...(await publishedOn(db, { daysAgo, count: 1 })))
    const lanes = await takeLanes(worker, sub, 'w')
    const handled: string[] = []
    for (let round = 0; round < 10 && handled.length < published.length; round += 1) {
      const claimed = await claimLanes(worker, sub, 'w', lanes)
      handled.push(...claimed.map(({ event }) => event.eventId))
      await worker.settle(claimed.map((delivery) => settled(delivery, DONE)))
    }
    expect(handled).toEqual(published)
  })
})
