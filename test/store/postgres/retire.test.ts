import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { postgresStore } from '../../../src/store/postgres/index.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import type { OutboxStore } from '../../../src/store/store.ts'
import type { RetireReport, RetireRequest } from '../../../src/store/subscription-store.ts'
import type { Transaction } from '../../../src/store/transaction.ts'
import { eventually } from '../../support/program.ts'
import { aggregates, beat, claim, DONE, dead, join, retryNow, settled } from '../contract/helpers.ts'
import {
  column,
  createOutboxDatabase,
  insertEvent,
  makeDead,
  type OutboxDatabase,
  one,
  refusal,
  subscribe,
} from './fixtures.ts'

let db: OutboxDatabase
let store: OutboxStore<Transaction>
let worker: PostgresWorkerStore

beforeEach(async () => {
  db = await createOutboxDatabase()
  store = postgresStore({ pool: db.pool, schema: db.schema })
  worker = new PostgresWorkerStore({ pool: db.pool, own: false }, db.quoted, systemClock)
})
afterEach(async () => {
  await db.drop()
})

const retire = (request: Partial<RetireRequest> = {}): Promise<RetireReport> =>
  store.retireSubscription('sub', {
    operator: 'kim',
    note: 'replaced',
    discard: false,
    force: false,
    ...request,
  })

const statuses = (): Promise<string[]> => column(db.pool, 'select status from outbox_delivery order by id')
const closed = (): Promise<boolean> =>
  one(db.pool, `select closed_at is not null from outbox_subscription where state = 'retired'`)

describe('retiring a subscription', () => {
  test('ends it: publishers make no more deliveries for it, and the act is recorded', async () => {
    const sub = await join(worker)
    expect((await worker.recover([sub.id])).retired).toEqual(new Map())
    expect(await retire()).toEqual({ discarded: 0, unresolvedDeadLetters: 0, locked: 0 })
    expect((await worker.recover([sub.id])).retired).toEqual(new Map([[sub.id, 'kim']]))
    await insertEvent(db.pool)

    expect(await statuses()).toEqual([])
    expect(await store.subscriptionStatuses()).toMatchObject([{ name: 'sub', state: 'retired' }])
    const { rows } = await db.pool.query(
      'select operator, action, target, affected, note from outbox_operator_log',
    )
    expect(rows).toEqual([
      {
        operator: 'kim',
        action: 'retire',
        target: { subscription: 'sub', subscriptionId: expect.any(Number) },
        affected: 0,
        note: 'replaced',
      },
    ])
  })

  test('is refused while deliveries are open, with their number, and nothing changes', async () => {
    const sub = await join(worker)
    for (let n = 0; n < 3; n += 1) await insertEvent(db.pool)
    await claim(worker, sub, 'w', 1)

    await expect(retire()).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('has open deliveries: 3.'),
    })

    expect(await statuses()).toEqual(['PROCESSING', 'PENDING', 'PENDING'])
    expect(await one(db.pool, 'select count(*)::int from outbox_operator_log')).toBe(0)
  })

  test('discards what is open when told to: each is DEAD, with a dead letter that is resolved', async () => {
    const sub = await join(worker, { orderBy: 'aggregate' })
    await insertEvent(db.pool, { aggregateId: 'fresh' })
    expect(await retire({ discard: true })).toEqual({ discarded: 1, unresolvedDeadLetters: 0, locked: 0 })

    const { rows } = await db.pool.query(
      `select l.subscription, l.aggregate_id, l.error_code, l.resolved, l.resolved_by, l.note, d.status
         from outbox_dead_letter l join outbox_delivery d on d.event_id = l.event_id and d.subscription_id = $1`,
      [sub.id],
    )
    expect(rows).toEqual([
      {
        subscription: 'sub',
        aggregate_id: 'fresh',
        error_code: 'SUBSCRIPTION_RETIRED',
        resolved: true,
        resolved_by: 'kim',
        note: 'replaced',
        status: 'DEAD',
      },
    ])
    expect(await one(db.pool, 'select affected from outbox_operator_log')).toBe(1)
  })

  test('discards retries and what a worker has in hand too, whose result is not written any more', async () => {
    const sub = await join(worker)
    for (let n = 0; n < 3; n += 1) await insertEvent(db.pool)
    const [first, second, third] = await claim(worker, sub, 'w')
    if (!first || !second || !third) throw new Error('nothing was claimed')
    await worker.settle([settled(first, DONE), settled(second, retryNow)])

    expect(await retire({ discard: true })).toMatchObject({ discarded: 2 })

    expect(await statuses()).toEqual(['DONE', 'DEAD', 'DEAD'])
    expect((await worker.settle([settled(third, DONE)])).lost).toHaveLength(1)
    expect(await claim(worker, sub, 'w')).toEqual([])
  })

  test('is refused while a live worker serves it, which is named, unless by force', async () => {
    const sub = await join(worker)
    await beat(worker, sub, 'w1', [])

    await expect(retire()).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('"sub" is served by w1'),
    })
    expect(await retire({ force: true })).toEqual({ discarded: 0, unresolvedDeadLetters: 0, locked: 0 })
  })

  test('is not kept from it by a worker whose lease has ended', async () => {
    const sub = await join(worker)
    await beat(worker, sub, 'w1', [])
    await db.pool.query(`update outbox_worker set until = now() - interval '1 ms'`)
    expect(await retire()).toMatchObject({ discarded: 0 })
  })

  test('needs a name and a subscription that exists', async () => {
    await expect(retire({ operator: ' ' })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    await expect(retire()).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await join(worker)
    await retire()
    await expect(retire()).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await refusal(db.pool.query(`select outbox_retire('sub', '')`))).toBe('22023')
  })

  test('leaves dead letters from before to a person, who can resolve them but not retry them', async () => {
    const sub = await join(worker)
    await insertEvent(db.pool)
    const [delivery] = await claim(worker, sub, 'w')
    if (!delivery) throw new Error('nothing was claimed')
    const report = await worker.settle([settled(delivery, dead)])
    const id = report.dead[0]?.deadLetterId ?? ''

    expect(await retire()).toEqual({ discarded: 0, unresolvedDeadLetters: 1, locked: 0 })

    await expect(store.retryDeadLetter(id, 'kim', null)).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('which was retired'),
    })
    await store.resolveDeadLetter(id, 'kim', null)
    expect(await one(db.pool, 'select resolved from outbox_dead_letter')).toBe(true)
  })
})

describe('an event that is being published while its subscription is retired', () => {
  /** Its trigger has seen the subscription, and its commit comes after the act. */
  async function retireBeside(): Promise<() => Promise<void>> {
    await join(worker)
    const publisher = await db.pool.connect()
    await publisher.query('begin')
    await insertEvent(publisher)
    await retire()
    return async () => {
      await publisher.query('commit')
      publisher.release()
    }
  }

  test('is set aside as the others were, as soon as its transaction has ended, and never waits for nobody', async () => {
    const commit = await retireBeside()
    await worker.advanceJoining()
    expect(await closed()).toBe(false)
    await commit()
    expect(await statuses()).toEqual(['PENDING'])

    await eventually('it is closed', async () => {
      await worker.advanceJoining()
      return closed()
    })

    expect(await statuses()).toEqual(['DEAD'])
    const { rows } = await db.pool.query('select error_code, resolved_by from outbox_dead_letter')
    expect(rows).toEqual([{ error_code: 'SUBSCRIPTION_RETIRED', resolved_by: 'kim' }])
    expect(await column(db.pool, 'select affected from outbox_operator_log order by id')).toEqual([0, 1])
  })

  test('is not made a delivery at all by a publisher with an older snapshot, who has to try again', async () => {
    await join(worker)
    const publisher = await db.pool.connect()
    await publisher.query('begin isolation level repeatable read')
    await publisher.query('select 1 from outbox_subscription')
    await retire()
    expect(await refusal(insertEvent(publisher))).toBe('40001')
    await publisher.query('rollback')
    publisher.release()
  })
})

describe('a name that was retired', () => {
  test('can be registered again: another order, its own beginning, nothing of the old one', async () => {
    const old = await join(worker)
    await insertEvent(db.pool, { aggregateId: 'a' })
    const claimed = await claim(worker, old, 'w')
    await worker.settle(claimed.map((delivery) => settled(delivery, DONE)))
    await retire()
    await insertEvent(db.pool, { aggregateId: 'between' })

    const now = await join(worker, { startFrom: 'beginning' })

    expect(now.id).not.toBe(old.id)
    expect(aggregates(await claim(worker, now, 'w'))).toEqual(['a', 'between'])
    expect(await store.subscriptionStatuses()).toMatchObject([
      { name: 'sub', state: 'retired', counts: { DONE: 1 } },
      { name: 'sub', state: 'active', counts: { PROCESSING: 2 } },
    ])
    await store.setPaused('sub', true, 'kim')
    expect(
      await column(db.pool, 'select paused_at is not null from outbox_subscription order by id'),
    ).toEqual([false, true])
  })

  test('begins now where it says so', async () => {
    await join(worker)
    await retire()
    await insertEvent(db.pool, { aggregateId: 'between' })
    const sub = await join(worker, { orderBy: 'aggregate', lanes: 2 })
    await insertEvent(db.pool, { aggregateId: 'after' })
    expect(sub.lanes).toBe(2)
    expect(await column(db.pool, 'select ordering_key from outbox_delivery')).toEqual(['order:after'])
  })
})

describe('what is left of a retired subscription', () => {
  const forget = (): Promise<number> =>
    one(db.pool, 'select outbox_forget(array(select event_id from outbox_event))')

  test('is forgotten with its events, once no person has to decide on it', async () => {
    await subscribe(db)
    const eventId = await insertEvent(db.pool)
    await insertEvent(db.pool)
    const { letterId } = await makeDead(db, { eventId })
    await retire({ discard: true })

    expect(await forget()).toBe(1)
    expect(await column(db.pool, 'select event_id from outbox_event')).toEqual([eventId])
    await store.resolveDeadLetter(letterId, 'kim', null)
    expect(await forget()).toBe(1)
    expect(await one(db.pool, 'select count(*)::int from outbox_delivery')).toBe(0)
    expect(await one(db.pool, 'select count(*)::int from outbox_dead_letter')).toBe(2)
  })

  test('cannot be removed from a subscription that lives', async () => {
    await subscribe(db)
    const eventId = await insertEvent(db.pool, { eventId: randomUUID() })
    const { letterId } = await makeDead(db, { eventId })
    await store.resolveDeadLetter(letterId, 'kim', null)
    expect(await refusal(db.pool.query('delete from outbox_delivery'))).toBe('55000')
    expect(await refusal(db.pool.query(`update outbox_delivery set status = 'PENDING', fresh = true`))).toBe(
      '55000',
    )
  })

  test('a delivery that waits becomes DEAD for no other reason', async () => {
    await subscribe(db)
    await insertEvent(db.pool)
    const attempt = db.pool.query(
      `update outbox_delivery set status = 'DEAD', fresh = false, last_error_code = 'X'`,
    )
    expect(await refusal(attempt)).toBe('55000')
  })
})
