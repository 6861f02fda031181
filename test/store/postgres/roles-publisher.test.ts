import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { assertInTransaction } from '../../../src/store/postgres/assert-in-transaction.ts'
import { insertEvents } from '../../../src/store/postgres/insert-events.ts'
import { copyIn } from './copy-in.ts'
import { column, insertEvent, makeDead, newEvent, one, refusal, subscribe } from './fixtures.ts'
import { createRolesDatabase, type RolesDatabase } from './role-fixtures.ts'

let db: RolesDatabase

/** For tests that write. */
const withDatabase = (): void => {
  beforeEach(async () => {
    db = await createRolesDatabase()
  })
  afterEach(async () => {
    await db.drop()
  })
}

/** Runs `work` as the publisher, in a transaction that is committed. */
async function publishing<Result>(work: (tx: pg.PoolClient) => Promise<Result>): Promise<Result> {
  const client = await db.as.publisher.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

const deliveries = (): Promise<number> => one(db.pool, 'select count(*)::int from outbox_delivery')

describe('a publisher can', () => {
  withDatabase()

  test('E1 publish one event and many, numbered or not; the fan-out works without any other right', async () => {
    await subscribe(db)
    const events = [newEvent(), newEvent({ sequenced: true }), newEvent({ sequenced: true })]
    await publishing(async (tx) => {
      await assertInTransaction(tx)
      await assertInTransaction({ query: (text, params) => tx.query(text, params as unknown[]) })
      expect(await insertEvents(tx, db.quoted, [newEvent()], { onDuplicate: 'error' })).toEqual({
        inserted: 1,
      })
      expect(await insertEvents(tx, db.quoted, events, { onDuplicate: 'error' })).toEqual({ inserted: 3 })
      expect(await insertEvents(tx, db.quoted, [...events, newEvent()], { onDuplicate: 'ignore' })).toEqual({
        inserted: 1,
      })
    })
    expect(await deliveries()).toBe(5)
    expect(
      await column(db.pool, 'select sequence::int from outbox_event where sequence is not null order by id'),
    ).toEqual([1, 2])
  })

  test('publish by a plain INSERT without an id, and by COPY', async () => {
    await subscribe(db)
    const columns = 'stream, event_type, aggregate_type, aggregate_id, payload'
    await publishing(async (tx) => {
      await tx.query(
        `insert into outbox_event (${columns}) values ('a', 'b', 'c', '1', '{}'), ('a', 'b', 'c', '2', '{}')`,
      )
      await copyIn(tx, `copy outbox_event (${columns}) from stdin`, 'a\tb\tc\t3\t{}\n')
    })
    expect(await deliveries()).toBe(3)
  })

  test('learn of a duplicate, though the server does not tell it which one of a batch', async () => {
    const known = newEvent()
    const publish = (events: (typeof known)[]): Promise<unknown> =>
      publishing((tx) => insertEvents(tx, db.quoted, events, { onDuplicate: 'error' }))
    await publish([known])
    await expect(publish([known])).rejects.toMatchObject({ eventIds: [known.eventId] })
    const other = newEvent()
    await expect(publish([other, known])).rejects.toMatchObject({
      code: 'DUPLICATE_EVENT',
      eventIds: [other.eventId, known.eventId],
      message: expect.stringContaining('at least one of the events'),
    })
  })
})

describe('a publisher cannot', () => {
  // One for all: what is refused leaves nothing behind.
  let untouched: RolesDatabase
  beforeAll(async () => {
    untouched = await createRolesDatabase()
    await insertEvent(untouched.pool)
  })
  afterAll(async () => {
    await untouched.drop()
  })

  const insert = (columns: string, values: string, rest = ''): string =>
    `insert into outbox_event (${columns}, stream, event_type, aggregate_type, aggregate_id, payload) ${rest}
     values (${values}, 's', 't', 'a', '1', '{}')`

  test.each([
    'select * from outbox_event',
    'select event_id from outbox_event',
    `update outbox_event set payload = '{}'`,
    'delete from outbox_event',
    'truncate outbox_event',
    `${insert('event_id', 'gen_random_uuid()')} returning event_id`,
    `${insert('event_id', 'gen_random_uuid()')} on conflict (event_id) do nothing`,
    `${insert('event_id', 'gen_random_uuid()')} on conflict (event_id) do update set payload = '{}'`,
    insert('xid', `'3'`),
    insert('created_at', 'now()'),
    insert('id', '1', 'overriding system value'),
    'select * from outbox_delivery',
    `insert into outbox_delivery (subscription_id, lane, id, event_id, max_attempts) values (1, 0, 1, gen_random_uuid(), 1)`,
    `update outbox_delivery set status = 'DONE'`,
    'delete from outbox_delivery',
    'select * from outbox_subscription',
    'select * from outbox_sequence',
    'update outbox_sequence set last = 0',
    'select * from outbox_dead_letter',
    'select * from outbox_migration',
    `insert into outbox_inbox (subscription, event_id) values ('s', gen_random_uuid())`,
    `select outbox_retry(1, 'publisher')`,
    `select outbox_resolve(1, 'publisher')`,
    `select outbox_forget('{}')`,
    `select outbox_close_dead_letter(1, 'publisher', null, 'retry')`,
    `select outbox_lane_of('x', 4::smallint)`,
    `select nextval('outbox_event_id_seq')`,
    `select setval('outbox_event_id_seq', 1)`,
    'select last_value from outbox_registry_xid',
    `select setval('outbox_registry_xid', 1)`,
    ...['row exclusive', 'share', 'share row exclusive', 'exclusive', 'access exclusive'].map(
      (mode) => `lock table outbox_event in ${mode} mode`,
    ),
    'alter table outbox_event disable trigger all',
    'drop trigger outbox_fan_out on outbox_event',
    'drop table outbox_event',
    `create trigger mine after insert on outbox_event for each row execute function outbox_fan_out()`,
    'create rule mine as on insert to outbox_event do instead nothing',
  ])('%s', async (sql) => {
    expect(await refusal(untouched.as.publisher.query(`begin; ${sql}; commit`))).toBe('42501')
    expect(await one(untouched.pool, 'select count(*)::int from outbox_event')).toBe(1)
  })

  test('create anything in the schema', async () => {
    const create = untouched.as.publisher.query(`create table ${untouched.schema}.mine (id int)`)
    expect(await refusal(create)).toBe('42501')
  })

  test.each(['outbox_fan_out', 'outbox_number', 'outbox_refuse_change', 'outbox_refuse_removal'])(
    'hang %s on a table of its own, to have rows it made up written with the owner’s rights',
    async (name) => {
      const referencing = name === 'outbox_fan_out' ? 'referencing new table as published_now' : ''
      const sql = `create temp table bait (event_id uuid, id bigint, stream text, event_type text, ordering_key text,
                          aggregate_type text, aggregate_id text, sequence bigint);
                   create trigger hook after insert on bait ${referencing}
                      for each statement execute function ${untouched.schema}.${name}()`
      expect(await refusal(untouched.as.publisher.query(sql))).toBe('42501')
    },
  )
})

describe('a hostile publisher', () => {
  withDatabase()

  test('cannot get its own functions, operators or temporary tables run with the owner’s rights', async () => {
    await subscribe(db, { name: 'all' })
    await subscribe(db, {
      name: 'some',
      streamLike: ['shop.%'],
      eventTypes: ['OrderPlaced'],
      orderBy: 'aggregate',
    })
    const evil = `${db.schema}_evil`
    await db.pool.query(`create schema ${evil} authorization ${db.login('publisher')}`)
    const { letterId } = await makeDead(db, { eventId: await insertEvent(db.pool) })
    await publishing(async (tx) => {
      for (const sql of hostileObjects(evil)) await tx.query(sql)
      await tx.query(`set local search_path = pg_temp, ${evil}, pg_catalog, ${db.schema}`)
      await tx.query(
        `insert into ${db.schema}.outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, sequence, payload)
         values ('${randomUUID()}', 'shop.order', 'OrderPlaced', 'order', '1', 1, '{}'),
                ('${randomUUID()}', 'shop.order', 'OrderPlaced', 'order', '1', 1, '{}')`,
      )
      expect(await one(tx, 'select count(*)::int from pg_temp.outbox_delivery')).toBe(0)
    })
    expect(await deliveries()).toBe(6)
    // The same traps for an operator's functions: set for the operator's session by the objects' names alone.
    await db.pool.query(`grant usage on schema ${evil} to ${db.login('operator')}`)
    const retry = `set search_path = ${evil}, pg_catalog; select ${db.schema}.outbox_retry(${letterId}, 'kim')`
    expect(await refusal(db.as.operator.query(retry))).toBeNull()
    await db.pool.query(`drop schema ${evil} cascade`)
  })

  /** Everything the definer functions call by a bare name, waiting first in the search path. */
  function hostileObjects(evil: string): string[] {
    const trap = (signature: string, returns: string): string =>
      `create function ${evil}.${signature} returns ${returns} language plpgsql as $$
       begin
         if current_user <> session_user then raise exception 'hijacked as %', current_user; end if;
         return null;
       end $$`
    const operator = (name: string, type: string): string =>
      `create operator ${evil}.${name} (leftarg = ${type}, rightarg = ${type}, function = ${evil}.trap_${type})`
    return [
      trap('current_setting(text)', 'text'),
      trap('set_config(text, text, boolean)', 'text'),
      trap('pg_current_xact_id()', 'xid8'),
      trap('pg_current_snapshot()', 'pg_snapshot'),
      trap('pg_visible_in_snapshot(xid8, pg_snapshot)', 'boolean'),
      trap('nextval(text)', 'bigint'),
      trap('nextval(regclass)', 'bigint'),
      trap('md5(text)', 'text'),
      trap('substr(text, int, int)', 'text'),
      trap('clock_timestamp()', 'timestamptz'),
      trap('btrim(text)', 'text'),
      trap('outbox_matches(text[], text[], text, text)', 'boolean'),
      trap('trap_text(text, text)', 'boolean'),
      trap('trap_int4(int4, int4)', 'boolean'),
      trap('trap_int8(int8, int8)', 'boolean'),
      ...['=', '<>', '~~', '||'].map((name) => operator(name, 'text')),
      ...['=', '<>', '>', '+', '-'].flatMap((name) => [operator(name, 'int4'), operator(name, 'int8')]),
      'create temp table outbox_delivery (id int)',
      'create temp table outbox_subscription (id int)',
      'create temp table outbox_sequence (ordering_key text primary key, last int)',
      'create temp table published_now (id int)',
      'create temp table pg_class (oid int)',
    ]
  }
})
