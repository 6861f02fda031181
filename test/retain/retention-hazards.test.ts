import { afterEach, beforeEach, expect, test } from 'vitest'
import { openRetention, type RetentionSystem } from '../acceptance/retention-system.ts'
import { eventually, rejection } from '../acceptance/support.ts'

let at: RetentionSystem

beforeEach(async () => {
  at = await openRetention()
})
afterEach(async () => {
  await at[Symbol.asyncDispose]()
})

const left = async (): Promise<string[]> =>
  (
    await at.system.rows<{ event_id: string }>('select event_id from outbox_event order by id, created_at')
  ).map(({ event_id }) => event_id)

test('an event that was amended lately at an old position does not end a run before what comes after it', async () => {
  await at.system.run([at.greeter()])
  const [dead] = await at.handled(60, 'nobody')
  const { deadLetters } = at.system.outbox
  const [letter] = await deadLetters.list()
  const payload = { name: 'ann', email: '' }
  await deadLetters.amend(letter?.id as string, payload, { operator: 'kim' })
  await at.system.untilSettled()
  await at.handled(50, 'bob', 'eve')
  const outbox = at.withPolicies([at.archiving()], { batchSize: 1 })
  expect(await outbox.retention.run({ operator: 'kim' })).toMatchObject([{ state: 'done', archived: 2 }])
  expect((await left())[0]).toBe(dead)
  expect(await left()).toHaveLength(2)
})

test('an event from a time when the clock was ahead does not end a run before what comes after it', async () => {
  await at.system.run([at.greeter()])
  const [ahead] = await at.handled(-400, 'ann')
  await at.handled(50, 'bob')
  const outbox = at.withPolicies([at.archiving()], { batchSize: 1 })
  expect(await outbox.retention.run({ operator: 'kim' })).toMatchObject([{ archived: 1 }])
  expect(await left()).toEqual([ahead])
})

test('a subscription that begins to join while the registry is being locked is seen', async () => {
  await at.system.run([at.greeter()])
  await at.handled(50, 'ann')
  const outbox = at.withPolicies([at.archiving()])
  await outbox.retention.prepare()
  const name = at.system.schema
  // As the server may be suspended at this very place: between the look at the tables and the lock.
  await at.system.rows(`
    create or replace function outbox_try_lock_registry() returns boolean
      language plpgsql set lock_timeout = '30s' as $$
    begin
      perform pg_advisory_xact_lock(4711, hashtext('${name}'));
      return true;
    end $$`)
  await using gate = await at.system
    .newPool()
    .connect()
    .then((client) => ({
      client,
      [Symbol.asyncDispose]: async () => client.release(true),
    }))
  await gate.client.query(`select pg_advisory_lock(4711, hashtext('${name}'))`)
  const stop = new AbortController()
  const run = outbox.retention.run({ operator: 'kim', signal: stop.signal })
  await eventually('it is at the gate', async () => {
    const waiting = await at.system.rows(
      `select 1 from pg_locks where locktype = 'advisory' and classid = 4711 and not granted
          and objid = (hashtext('${name}')::bigint & 4294967295)::oid`,
    )
    return waiting.length === 1
  })
  await at.system.rows(`update outbox_subscription set state = 'joining'`)
  stop.abort()
  await gate.client.query(`select pg_advisory_unlock_all()`)
  expect(await run).toMatchObject([{ state: 'interrupted', archived: 0 }])
  expect(await left()).toHaveLength(1)
})

test('what an archive does not take stays where it is', async () => {
  await at.system.run([at.greeter()])
  const ids = await at.handled(50, 'ann', 'bob')
  const outbox = at.withPolicies([at.archiving()])
  await outbox.retention.prepare()
  // A table of somebody's own, with a rule of its own: one row for each stream.
  await at.system.rows('create unique index on events (stream)')
  const refused = await rejection(outbox.retention.run({ operator: 'kim' }))
  expect(refused).toMatchObject({ code: 'STORE_REFUSED' })
  expect(refused.message).toContain('did not take')
  expect(await left()).toEqual(ids)
  expect(await at.system.count('outbox_archived')).toBe(0)
})

test('a publisher cannot hide by functions of his own that an event was archived', async () => {
  await at.system.run([at.greeter()])
  const [old] = await at.handled(50, 'ann')
  await at.withPolicies([at.archiving()]).retention.run({ operator: 'kim' })
  const client = await at.system.newPool().connect()
  try {
    await client.query(
      `create function get_byte(bytea, integer) returns integer language sql as 'select 115'`,
    )
    await client.query(
      `create function date_part(text, timestamptz) returns double precision language sql as 'select 3600'`,
    )
    await client.query(`set search_path = ${at.system.schema}, pg_catalog`)
    const again = client.query(
      `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
       values ($1, 'umbra.member', 'MemberJoined', 'member', 'ann', '{}')`,
      [old],
    )
    expect(await rejection(again)).toMatchObject({ code: '23505' })
  } finally {
    client.release(true)
  }
})

test('events that no subscription took and that are young are not read through while registrations wait', async () => {
  await at.system.run([at.greeter()])
  const [reported] = await at.handled(50, 'ann')
  await at.system.rows(`
    insert into outbox_unmatched (event_id, stream, event_type, reported_at)
      select outbox_uuid_v7(), 'umbra.member', 'Other', now() from generate_series(1, 20000)`)
  const outbox = at.withPolicies([at.archiving()])
  await outbox.retention.prepare()
  await at.system.rows('analyze outbox_unmatched')
  const client = await at.system.newPool().connect()
  try {
    await client.query('begin')
    const settings = {
      stream: '*',
      streamLike: '%',
      streamUnlike: [],
      keepSeconds: 86_400,
      archive: null,
      mask: null,
    }
    const begun = await client.query('select outbox_begin_retention($1, $2) as id', ['all', settings])
    const step = `select state, deleted from outbox_retain($1, 'kim', null, 'me', 100)`
    const { rows } = await client.query(step, [begun.rows[0].id])
    expect(rows).toEqual([{ state: 'running', deleted: 1 }])
    const more = await client.query(step, [begun.rows[0].id])
    expect(more.rows).toEqual([{ state: 'done', deleted: 0 }])
    const read = await client.query(
      `select seq_tup_read + idx_tup_fetch as read from pg_stat_xact_user_tables
        where relid = 'outbox_unmatched'::regclass`,
    )
    expect(Number(read.rows[0].read)).toBeLessThan(1_000)
    await client.query('rollback')
  } finally {
    client.release(true)
  }
  expect(await left()).toEqual([reported])
})
