import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  column,
  createOutboxDatabase,
  insertEvent,
  inTransaction,
  makeDead,
  type OutboxDatabase,
  one,
  refusal,
  subscribe,
} from './fixtures.ts'

let db: OutboxDatabase

beforeEach(async () => {
  db = await createOutboxDatabase()
})
afterEach(async () => {
  await db.drop()
})

/** The statement, run by the owner of the tables (in these tests a superuser), with whatever settings it likes. */
const run = (sql: string, settings = ''): Promise<unknown> => db.pool.query(`${settings}; ${sql}`)

describe('events', () => {
  test.each([
    `update outbox_event set payload = '{}'`,
    `update outbox_event set event_type = event_type`,
    `update outbox_event set headers = '{}' where false`,
    'delete from outbox_event',
    'delete from outbox_event where false',
    'truncate outbox_event',
    'truncate outbox_event cascade',
    `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
       select event_id, 's', 't', 'a', '1', '{"changed": true}' from outbox_event
       on conflict (event_id) do update set payload = excluded.payload`,
  ])('U10 once written an event is immutable, even for the owner: %s', async (sql) => {
    const eventId = await insertEvent(db.pool)
    expect(await refusal(run(sql))).toBe('55000')
    expect(await column(db.pool, 'select event_id from outbox_event')).toEqual([eventId])
    expect(await one(db.pool, 'select payload from outbox_event')).toEqual({ total: 1 })
  })

  test('U10 MERGE can add events and change none', async () => {
    if ((await one<number>(db.pool, `select current_setting('server_version_num')::int`)) < 150000) return
    const eventId = await insertEvent(db.pool)
    const merge = (then: string): Promise<unknown> =>
      run(`merge into outbox_event e using (select '${eventId}'::uuid as id) n on e.event_id = n.id ${then}`)
    expect(await refusal(merge(`when matched then update set payload = '{}'`))).toBe('55000')
    expect(await refusal(merge('when matched then delete'))).toBe('55000')
  })

  test('U10 what only looks like retention cannot change or truncate', async () => {
    await insertEvent(db.pool)
    const settings = `set local commitpost.retaining = 'on'`
    expect(await refusal(run(`update outbox_event set payload = '{}'`, settings))).toBe('55000')
    expect(await refusal(run('truncate outbox_event', settings))).toBe('55000')
  })

  test('the position and the transaction id cannot be chosen by accident', async () => {
    const insert = (columns: string, values: string): Promise<unknown> =>
      run(`insert into outbox_event (${columns}, stream, event_type, aggregate_type, aggregate_id, payload)
           values (${values}, 's', 't', 'a', '1', '{}')`)
    expect(await refusal(insert('id', '1'))).toBe('428C9')
  })
})

describe('forgetting (retention)', () => {
  const forget = (...ids: string[]): Promise<number> =>
    one(db.pool, 'select outbox_forget($1::uuid[])', [ids])
  const settle = (eventId: string): Promise<unknown> =>
    db.pool.query(
      `update outbox_delivery set status = 'PROCESSING', fresh = false, attempt_count = 1, locked_by = 'w', locked_until = now(),
              lease_token = 1 where event_id = '${eventId}';
       update outbox_delivery set status = 'DONE', fresh = false, processed_at = now(), locked_by = null, locked_until = null,
              lease_token = null where event_id = '${eventId}'`,
    )

  test.each(['none', 'aggregate', 'total'] as const)(
    'removes events whose every delivery is DONE, with those deliveries, and no other (order: %s)',
    async (orderBy) => {
      await subscribe(db, { name: 'first', orderBy })
      await subscribe(db, { name: 'second' })
      const done = await insertEvent(db.pool)
      const waiting = await insertEvent(db.pool)
      const half = await insertEvent(db.pool)
      await settle(done)
      await settle(half)
      await db.pool.query(`delete from outbox_delivery where event_id = $1 and subscription_id = 1`, [half])
      await db.pool.query(
        `insert into outbox_delivery (subscription_id, lane, id, event_id, ordering_key, max_attempts)
         select s.id, case s.lanes when 0 then 0 else outbox_lane_of(k.key, s.lanes) end, e.id, e.event_id, k.key, 3
           from outbox_event e, outbox_subscription s,
                outbox_key_of(s.order_by, e.ordering_key, e.aggregate_type, e.aggregate_id) as k(key)
          where e.event_id = $1 and s.name = 'first'`,
        [half],
      )
      expect(await forget(done, waiting, half)).toBe(1)
      expect(await column(db.pool, 'select event_id from outbox_event order by id')).toEqual([waiting, half])
      expect(await column(db.pool, 'select distinct event_id from outbox_delivery')).not.toContain(done)
    },
  )

  test('E12 keeps an event whose delivery is DEAD', async () => {
    await subscribe(db)
    const eventId = await insertEvent(db.pool)
    await makeDead(db, { eventId })
    expect(await forget(eventId)).toBe(0)
    expect(await one(db.pool, 'select count(*)::int from outbox_event')).toBe(1)
  })

  test('waits while a subscription is joining, which may want old events', async () => {
    await subscribe(db, { state: 'joining', eventTypes: ['Other'] })
    const eventId = await insertEvent(db.pool)
    await db.pool.query('update outbox_unmatched set reported_at = now()')
    expect(await forget(eventId)).toBe(0)
    await db.pool.query(`update outbox_subscription set state = 'active'`)
    expect(await forget(eventId)).toBe(1)
  })

  test('takes what is known of an event that nobody took with it, once that has been reported', async () => {
    await subscribe(db, { eventTypes: ['Other'] })
    const eventId = await insertEvent(db.pool)
    expect(await forget(eventId)).toBe(0)
    await db.pool.query('update outbox_unmatched set reported_at = now()')
    expect(await forget(eventId)).toBe(1)
    expect(await one(db.pool, 'select count(*)::int from outbox_unmatched')).toBe(0)
  })

  test('leaves the door shut behind it, in the same transaction too', async () => {
    await inTransaction(db, async (client) => {
      const first = await insertEvent(client)
      await insertEvent(client)
      await client.query('select outbox_forget($1::uuid[])', [[first]])
      await client.query('savepoint before')
      expect(await refusal(client.query('delete from outbox_event'))).toBe('55000')
      await client.query('rollback to savepoint before')
    })
    expect(await one(db.pool, 'select count(*)::int from outbox_event')).toBe(1)
  })
})

describe('the operator log', () => {
  test.each([
    `update outbox_operator_log set operator = 'somebody else'`,
    'delete from outbox_operator_log',
    'truncate outbox_operator_log',
  ])('is append only, even for the owner and whatever the session sets: %s', async (sql) => {
    await db.pool.query(
      `insert into outbox_operator_log (operator, action, target, affected) values ('kim', 'retry', '{}', 1)`,
    )
    expect(await refusal(run(sql))).toBe('55000')
    expect(await refusal(run(sql, `set local commitpost.retaining = 'on'`))).toBe('55000')
    expect(await column(db.pool, 'select operator from outbox_operator_log')).toEqual(['kim'])
  })

  test('takes no act without a name', async () => {
    const insert = `insert into outbox_operator_log (operator, action, target, affected) values ('  ', 'retry', '{}', 1)`
    expect(await refusal(run(insert))).toBe('23514')
  })
})
