import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { closeDeadLetter } from '../../../src/store/postgres/close-dead-letter.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { readGauges } from '../../../src/store/postgres/read-gauges.ts'
import { recordLeases } from '../../support/leases.ts'
import { createOutboxDatabase, insertEvent, makeDead, type OutboxDatabase, subscribe } from './fixtures.ts'
import { createRolesDatabase } from './role-fixtures.ts'

const LIMITS = { countLimit: 100, timeoutMs: 20_000 }

let db: OutboxDatabase

beforeEach(async () => {
  db = await createOutboxDatabase({ connections: 4 })
})
afterEach(async () => {
  await db.drop()
})

const set = (eventId: string, assignments: string): Promise<unknown> =>
  db.pool.query(`update outbox_delivery set ${assignments} where event_id = $1`, [eventId])
const LEASED = `status = 'PROCESSING', fresh = false, attempt_count = 1, locked_by = 'w', locked_until = now(), lease_token = 1`
const FREE = 'locked_by = null, locked_until = null, lease_token = null'

describe('the gauges of the tables', () => {
  test('E14 U9 count what waits and what is in hand by subscription and stream, with the age of the oldest', async () => {
    await subscribe(db, { name: 'all' })
    await subscribe(db, { name: 'orders', eventTypes: ['OrderPlaced'], orderBy: 'aggregate' })
    const ids: string[] = []
    for (let n = 0; n < 5; n += 1) ids.push(await insertEvent(db.pool, { aggregateId: String(n) }))
    const [first = '', second = '', third = '', fourth = ''] = ids
    await insertEvent(db.pool, { stream: 'shop.payment', type: 'PaymentTaken' })
    await set(first, `created_at = now() - interval '90 seconds'`)
    await set(second, LEASED)
    await set(third, LEASED)
    await set(third, `status = 'DONE', processed_at = now(), ${FREE}`)
    await set(fourth, LEASED)
    await set(fourth, `status = 'PENDING', fresh = false, held = true, next_retry_at = now(), ${FREE}`)
    await recordLeases(db.pool)

    const { backlog, capped } = await readGauges(db.pool, db.quoted, LIMITS)
    const age = expect.any(Number) as number
    const orders = { stream: 'shop.order', pending: 3, held: 1, processing: 1, oldestPendingSeconds: age }
    expect(backlog).toHaveLength(3)
    expect(backlog).toEqual(
      expect.arrayContaining([
        { subscription: 'all', ...orders },
        { subscription: 'orders', ...orders },
        {
          subscription: 'all',
          stream: 'shop.payment',
          pending: 1,
          held: 0,
          processing: 0,
          oldestPendingSeconds: age,
        },
      ]),
    )
    const old = backlog.filter(({ oldestPendingSeconds }) => (oldestPendingSeconds ?? 0) >= 90)
    expect(old.map(({ stream }) => stream)).toEqual(['shop.order', 'shop.order'])
    expect(capped).toBe(false)
  })

  test('D8 count dead letters that wait for a person by event type, and leave out those that are resolved', async () => {
    await subscribe(db, { name: 'mailer' })
    for (const type of ['OrderPlaced', 'OrderPlaced', 'OrderPaid', 'OrderPaid']) {
      await makeDead(db, { eventId: await insertEvent(db.pool, { type }) })
    }
    const { letterId } = await makeDead(db, { eventId: await insertEvent(db.pool) })
    await closeDeadLetter(db.pool, db.quoted, 'resolve', letterId, 'kim', null)
    const { deadLetters } = await readGauges(db.pool, db.quoted, LIMITS)
    expect(deadLetters.map(({ eventType, count }) => `${eventType} ${count}`).toSorted()).toEqual([
      'OrderPaid 2',
      'OrderPlaced 2',
    ])
  })

  test('count up to the limit and say that there may be more, but know the oldest of every lane', async () => {
    await subscribe(db, { name: 'ordered', orderBy: 'aggregate' })
    for (let n = 0; n < 40; n += 1) await insertEvent(db.pool, { aggregateId: String(n) })
    const lastLane = 'select max(lane) from outbox_delivery'
    await db.pool.query(
      `update outbox_delivery set created_at = now() - interval '1 hour'
        where id = (select min(id) from outbox_delivery where lane = (${lastLane}))`,
    )
    const { backlog, capped } = await readGauges(db.pool, db.quoted, { ...LIMITS, countLimit: 3 })
    expect(capped).toBe(true)
    expect(backlog).toMatchObject([{ pending: 3 }])
    expect(backlog[0]?.oldestPendingSeconds).toBeGreaterThanOrEqual(3_600)
  })

  test('tell of subscriptions, live workers, tables and the oldest event, and of retired ones nothing', async () => {
    const id = await subscribe(db, { name: 'mailer' })
    await subscribe(db, { name: 'gone', state: 'retired' })
    await db.pool.query(
      `update outbox_subscription set paused_at = now(), paused_by = 'kim' where name = 'mailer'`,
    )
    await db.pool.query(
      `insert into outbox_worker (worker_id, subscription_ids, host, pid, until)
       values ('alive', array[$1::int], 'h', 1, now() + interval '1 hour'), ('late', array[$1::int], 'h', 2, now())`,
      [id],
    )
    expect((await readGauges(db.pool, db.quoted, LIMITS)).oldestEventSeconds).toBeNull()
    await insertEvent(db.pool)
    await db.pool.query('analyze outbox_event')
    const { subscriptions, tables, oldestEventSeconds } = await readGauges(db.pool, db.quoted, LIMITS)
    expect(subscriptions).toEqual([{ subscription: 'mailer', state: 'active', paused: true, workers: 1 }])
    expect(tables.map(({ table }) => table)).toEqual([
      'outbox_dead_letter',
      'outbox_delivery',
      'outbox_event',
      'outbox_inbox',
    ])
    expect(tables.every(({ bytes }) => bytes > 0)).toBe(true)
    expect(tables.find(({ table }) => table === 'outbox_event')).toMatchObject({ estimatedRows: 1 })
    expect(oldestEventSeconds).toBeGreaterThanOrEqual(0)
  })

  test('are read on a connection of their own: an application that uses up its pool does not stop them', async () => {
    await subscribe(db)
    const clients = await Promise.all(Array.from({ length: 4 }, () => db.pool.connect()))
    try {
      const { subscriptions } = await postgresStore({ pool: db.pool, schema: db.schema }).readGauges(LIMITS)
      expect(subscriptions).toHaveLength(1)
    } finally {
      for (const client of clients) client.release()
    }
  })

  test('are ended by the database when they take too long, whatever they wait for', async () => {
    const blocker = await db.pool.connect()
    await blocker.query('begin; lock table outbox_dead_letter in access exclusive mode')
    try {
      const store = postgresStore({ pool: db.pool, schema: db.schema })
      await expect(store.readGauges({ ...LIMITS, timeoutMs: 100 })).rejects.toThrow(
        /metrics was refused by the database \(SQLSTATE (?:57014|55P03)\)/,
      )
    } finally {
      await blocker.query('rollback')
      blocker.release()
    }
  })
})

test('the viewer, the operator and the worker may read the gauges, the publisher may not', async () => {
  await using roles = await createRolesDatabase()
  for (const job of ['viewer', 'operator', 'worker'] as const) {
    expect(await readGauges(roles.as[job], roles.quoted, LIMITS)).toMatchObject({ backlog: [] })
  }
  await expect(readGauges(roles.as.publisher, roles.quoted, LIMITS)).rejects.toThrow('permission denied')
})
