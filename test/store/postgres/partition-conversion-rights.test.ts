import { afterEach, beforeEach, expect, test } from 'vitest'
import { partitionTables } from '../../../src/store/postgres/partition-tables.ts'
import { uuidV7At } from '../../support/install-tables.ts'
import { column, insertEvent } from './fixtures.ts'
import { createRetentionDatabase, type RetentionDatabase } from './retention-fixtures.ts'

let db: RetentionDatabase
beforeEach(async () => {
  db = await createRetentionDatabase()
  await insertEvent(db.pool, { eventId: uuidV7At(Date.now()) })
})
afterEach(async () => {
  await db.drop()
})

const convert = () => partitionTables(db.pool, { schema: db.schema })

test('default privileges give nobody more than he had', async () => {
  const role = `${db.schema}_reader`
  await db.pool.query(`create role ${role};
    alter default privileges in schema ${db.schema} grant select, insert on tables to ${role};
    alter default privileges in schema ${db.schema} grant usage on sequences to ${role}`)
  try {
    await convert()
    const rights = await column(
      db.pool,
      `
      select c.relname from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p')
         and has_table_privilege($2, c.oid, 'select, insert')
      union all select c.relname from pg_class c where c.relnamespace = $1::regnamespace and c.relname = 'outbox_event_id_seq'
         and has_sequence_privilege($2, $1 || '.outbox_event_id_seq', 'usage')`,
      [db.schema, role],
    )
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
  const states = () =>
    column(
      db.pool,
      `select t.tgname || ' ' || t.tgenabled::text from pg_trigger t
    where t.tgrelid = 'outbox_event'::regclass and not t.tgisinternal order by 1`,
    )
  const before = await states()
  await convert()
  expect(await states()).toEqual(before)
})

test('a function that is bound to the table is named, since it would read the rest only', async () => {
  await db.pool.query(
    'create function mine() returns bigint begin atomic select count(*) from outbox_event; end',
  )
  await expect(convert()).rejects.toMatchObject({
    code: 'INVALID_STATE',
    message: expect.stringContaining('mine()'),
  })
})

test('a publication of the whole schema is named', async () => {
  await db.pool.query(`create publication cp_${db.schema} for tables in schema ${db.schema}`)
  try {
    await expect(convert()).rejects.toMatchObject({ code: 'INVALID_STATE' })
  } finally {
    await db.pool.query(`drop publication cp_${db.schema}`)
  }
})

test('a foreign key of the table is named', async () => {
  await db.pool.query(`create table streams (name text primary key);
    insert into streams select distinct stream from outbox_event;
    alter table outbox_event add constraint known foreign key (stream) references streams (name)`)
  await expect(convert()).rejects.toMatchObject({
    code: 'INVALID_STATE',
    message: expect.stringContaining('known'),
  })
})

test('the publication that the log is read by has the partitioned table, and the plain one again after going back', async () => {
  const published = () =>
    column(
      db.pool,
      `select r.prrelid::regclass::text || ' ' || c.relkind::text from pg_publication_rel r
         join pg_publication p on p.oid = r.prpubid and p.pubname = outbox_publication()
         join pg_class c on c.oid = r.prrelid`,
    )
  expect(await published()).toEqual(['outbox_event r'])
  await convert()
  expect(await published()).toEqual(['outbox_event p'])
  await db.pool.query('select outbox_unpartition()')
  expect(await published()).toEqual(['outbox_event r'])
})
