import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../../src/delivery/delivery.ts'
import { completeInTransaction } from '../../../src/store/postgres/complete-in-transaction.ts'
import { recordOnce } from '../../../src/store/postgres/record-once.ts'
import {
  createOutboxDatabase,
  inRolledBack,
  insertEvent,
  inTransaction,
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

describe('recording an event once', () => {
  const record = (tx: pg.PoolClient, subscription: string, eventId: string): Promise<boolean> =>
    recordOnce(tx, db.quoted, subscription, eventId)

  test('I6 U7 the second time says that the effect has happened', async () => {
    const eventId = randomUUID()
    expect(await inTransaction(db, (tx) => record(tx, 'billing', eventId))).toBe(true)
    expect(await inTransaction(db, (tx) => record(tx, 'billing', eventId))).toBe(false)
    expect(await inTransaction(db, (tx) => record(tx, 'billing', eventId.toUpperCase()))).toBe(false)
    expect(await inTransaction(db, (tx) => record(tx, 'audit', eventId))).toBe(true)
    expect(await inTransaction(db, (tx) => record(tx, 'billing', randomUUID()))).toBe(true)
  })

  test('I6 a record goes with its transaction: rolled back, the effect may happen again', async () => {
    const eventId = randomUUID()
    expect(await inRolledBack(db, (tx) => record(tx, 'billing', eventId))).toBe(true)
    expect(await inTransaction(db, (tx) => record(tx, 'billing', eventId))).toBe(true)
  })

  test.each([
    ['commit', false],
    ['rollback', true],
  ])('I6 of two at once the second waits; when the first ends in %s it gets %s', async (end, second) => {
    const eventId = randomUUID()
    const first = await db.pool.connect()
    await first.query('begin')
    expect(await record(first, 'billing', eventId)).toBe(true)
    const waiting = inTransaction(db, (tx) => record(tx, 'billing', eventId))
    await new Promise((resolve) => setTimeout(resolve, 50))
    await first.query(end)
    first.release()
    expect(await waiting).toBe(second)
  })
})

describe('completing in the transaction of the handler', () => {
  let delivery: ClaimedDelivery

  beforeEach(async () => {
    const subscriptionId = await subscribe(db, { name: 'billing', orderBy: 'aggregate' })
    const eventId = await insertEvent(db.pool)
    const { rows } = await db.pool.query<{ lane: number; id: string; lease_token: string }>(
      `update outbox_delivery set status = 'PROCESSING', fresh = false, attempt_count = 1, locked_by = 'w1', lease_token = 7,
              locked_until = now() + interval '1 minute', suspect = true returning lane, id, lease_token`,
    )
    const row = rows[0] as { lane: number; id: string; lease_token: string }
    delivery = {
      subscriptionId,
      lane: row.lane,
      position: row.id,
      lease: { token: row.lease_token, workerId: 'w1' },
      attempt: 1,
      maxAttempts: 3,
      suspect: true,
      event: { eventId } as ClaimedDelivery['event'],
    }
  })

  const complete = (tx: pg.PoolClient, changes: Partial<ClaimedDelivery> = {}): Promise<void> =>
    completeInTransaction(tx, db.quoted, { ...delivery, ...changes })
  const state = (): Promise<string> => one(db.pool, 'select status from outbox_delivery')

  test('makes it DONE with the effect, or neither', async () => {
    await inRolledBack(db, (tx) => complete(tx))
    expect(await state()).toBe('PROCESSING')
    await inTransaction(db, (tx) => complete(tx))
    const { rows } = await db.pool.query(
      'select status, suspect, locked_by, lease_token, processed_at is not null as timed from outbox_delivery',
    )
    expect(rows).toEqual([
      { status: 'DONE', suspect: false, locked_by: null, lease_token: null, timed: true },
    ])
  })

  test('with a lost lease it throws, which rolls the effect back', async () => {
    await db.pool.query('create table effect (id int)')
    await db.pool.query('update outbox_delivery set lease_token = 8')
    const handled = inTransaction(db, async (tx) => {
      await tx.query('insert into effect values (1)')
      await complete(tx)
    })
    await expect(handled).rejects.toMatchObject({
      code: 'LEASE_LOST',
      eventId: delivery.event.eventId,
      subscription: 'billing',
    })
    expect(await one(db.pool, 'select count(*)::int from effect')).toBe(0)
    expect(await state()).toBe('PROCESSING')
  })

  test('E6 a second time it is lost: DONE is never done again', async () => {
    await inTransaction(db, (tx) => complete(tx))
    expect(await refusal(inTransaction(db, (tx) => complete(tx)))).toBe('LEASE_LOST')
  })

  test('a delivery that is not there is lost too, by the number of its subscription', async () => {
    for (const changes of [{ position: '999' }, { lane: 63 }, { subscriptionId: 999 }]) {
      expect(await refusal(inTransaction(db, (tx) => complete(tx, changes)))).toBe('LEASE_LOST')
    }
    expect(await state()).toBe('PROCESSING')
  })
})
