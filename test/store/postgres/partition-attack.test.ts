import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { announceRegistration } from '../../../src/store/postgres/announce-registration.ts'
import { partitionTables } from '../../../src/store/postgres/partition-tables.ts'
import type { RegisteredSubscription } from '../../../src/store/subscription-store.ts'
import { uuidV7At } from '../../support/install-tables.ts'
import { claim, join, untilActive } from '../contract/helpers.ts'
import { column, insertEvent, inTransaction, one } from './fixtures.ts'
import { doneOn, partitionInThePast, partitions, publishedOn } from './partition-fixtures.ts'
import { createRetentionDatabase, PACE, policyOf, type RetentionDatabase } from './retention-fixtures.ts'

const THREE_DAYS = { keepSeconds: 3 * 86_400 }

let db: RetentionDatabase
beforeEach(async () => {
  db = await createRetentionDatabase()
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

describe('drop', () => {
  let sub: RegisteredSubscription
  beforeEach(async () => {
    await partitionInThePast(db, 10)
    sub = await join(db.worker)
  })

  test('a registration that has announced itself and not committed when the survey looks', async () => {
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

  test('events of another server, whose transaction ids this one has not come to', async () => {
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

  test('a vacuum at work on the partition of today', async () => {
    await doneOn(db, await publishedOn(db, { daysAgo: 10, count: 10 }), 5)
    const live = (await partitions(db, 'outbox_delivery')).at(-4) as string
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

  test('something of the user that depends on a partition', async () => {
    await doneOn(db, await publishedOn(db, { daysAgo: 10, count: 10 }), 5)
    const [, first] = await partitions(db, 'outbox_event')
    await db.pool.query(`create view mine as select * from ${first}`)
    await untilDone(await begin())
    expect(await left()).toEqual([])
  })

  test('late events do not have to be looked for among all since an old transaction began', async () => {
    await doneOn(db, await publishedOn(db, { daysAgo: 10, count: 10 }), 5)
    const idle = await db.pool.connect()
    await idle.query('begin')
    await idle.query('select pg_current_xact_id()')
    await db.pool.query(`
      insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
      select outbox_uuid_v7(), 's', 't', 'a', n::text, '{}' from generate_series(1, 20000) n`)
    const step = await begin()
    await surveyed()
    await db.pool.query('analyze outbox_event')
    const plan = await one<unknown[]>(db.pool, `
      explain (analyze, format json, timing off)
      select e.event_id from outbox_event e, outbox_period_survey survey
       where e.xid >= pg_snapshot_xmin(survey.snapshot) and not pg_visible_in_snapshot(e.xid, survey.snapshot)
         and (e.event_id < outbox_id_at(outbox_start_of(survey.end_day)) or e.id < outbox_first_position(survey.end_day))`)
    console.log(JSON.stringify(plan).match(/"(Actual Rows|Rows Removed by Filter|Node Type|Index Name|Index Cond)":[^,]*/g)?.join(' '))
    await step()
    await idle.query('rollback')
    idle.release()
  })
})

describe('conversion', () => {
  const convert = () => partitionTables(db.pool, { schema: db.schema })

  test('default privileges give nobody more than he had', async () => {
    const role = `${db.schema}_reader`
    await db.pool.query(`create role ${role};
      alter default privileges in schema ${db.schema} grant select, insert on tables to ${role};
      alter default privileges in schema ${db.schema} grant usage on sequences to ${role}`)
    try {
      await insertEvent(db.pool, { eventId: uuidV7At(Date.now()) })
      await convert()
      const rights = await column(db.pool, `
        select c.relname from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p')
           and has_table_privilege($2, c.oid, 'select, insert')
        union all select c.relname from pg_class c where c.relnamespace = $1::regnamespace and c.relname = 'outbox_event_id_seq'
           and has_sequence_privilege($2, $1 || '.outbox_event_id_seq', 'usage')`, [db.schema, role])
      expect(rights).toEqual([])
    } finally {
      await db.pool.query(`drop owned by ${role}; drop role ${role}`)
    }
  })

  test('a trigger that is switched off stays so, and one that fires always too', async () => {
    await db.pool.query(`
      create function hear() returns trigger language plpgsql as 'begin return null; end';
      create trigger mine after insert on outbox_event for each statement execute function hear();
      create trigger mine_always after insert on outbox_event for each row execute function hear();
      alter table outbox_event disable trigger mine;
      alter table outbox_event enable always trigger mine_always`)
    const states = () => column(db.pool, `select t.tgname || ' ' || t.tgenabled::text from pg_trigger t
      where t.tgrelid = 'outbox_event'::regclass and not t.tgisinternal order by 1`)
    const before = await states()
    await convert()
    expect(await states()).toEqual(before)
  })

  test('a function that is bound to the table goes with it, or the conversion is refused', async () => {
    await insertEvent(db.pool, { eventId: uuidV7At(Date.now()) })
    await db.pool.query(`create function mine() returns bigint begin atomic select count(*) from outbox_event; end`)
    const refused = await convert().then(() => false, () => true)
    if (refused) return
    await db.pool.query(`select outbox_make_period(r.d, r.d + 1) from (select rest_until + 20 as d from outbox_partitioning) r`)
    const at = await one<string>(db.pool, `select (extract(epoch from outbox_start_of(rest_until + 20)) * 1000)::bigint from outbox_partitioning`)
    await insertEvent(db.pool, { eventId: uuidV7At(Number(at) + 5) })
    expect(await one(db.pool, 'select count(*)::int from outbox_event')).toBe(2)
    expect(await one(db.pool, 'select mine()::int')).toBe(2)
  })

  test('a publication of all tables is named', async () => {
    await insertEvent(db.pool, { eventId: uuidV7At(Date.now()) })
    await db.pool.query(`create publication cp_${db.schema} for tables in schema ${db.schema}`)
    try {
      await expect(convert()).rejects.toMatchObject({ code: 'INVALID_STATE' })
    } finally {
      await db.pool.query(`drop publication cp_${db.schema}`)
    }
  })

  test('the tablespace, foreign keys and options of the table go with it', async () => {
    await db.pool.query(`create table streams (name text primary key); insert into streams values ('shop.order');
      alter table outbox_event add foreign key (stream) references streams (name)`)
    await insertEvent(db.pool, { eventId: uuidV7At(Date.now()) })
    const refused = await convert().then(() => false, () => true)
    if (refused) return
    await expect(insertEvent(db.pool, { eventId: uuidV7At(Date.now()), stream: 'other' })).rejects.toMatchObject({ code: '23503' })
  })
})
