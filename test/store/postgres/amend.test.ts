import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { amendDeadLetter } from '../../../src/store/postgres/amend-dead-letter.ts'
import { closeDeadLetter } from '../../../src/store/postgres/close-dead-letter.ts'
import { findDeadLetter } from '../../../src/store/postgres/find-dead-letter.ts'
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

beforeEach(async () => {
  db = await createOutboxDatabase()
})
afterEach(async () => {
  await db.drop()
})

async function amend(id: string, payload: object = { total: 2 }): Promise<string> {
  const eventId = randomUUID()
  const request = { eventId, payloadJson: JSON.stringify(payload), schemaVersion: null, operator: 'kim' }
  await amendDeadLetter(db.pool, db.quoted, id, { ...request, note: 'wrong total' })
  return eventId
}

interface Row {
  readonly [column: string]: unknown
}

const rows = async (sql: string, values: unknown[] = []): Promise<Row[]> =>
  (await db.pool.query<Row>(sql, values)).rows

describe('an amended event', () => {
  test('D3 takes the place of the dead one: its position, key and number, linked to it; the original stays', async () => {
    await subscribe(db, { orderBy: 'aggregate' })
    const original = await insertEvent(db.pool, { sequenced: true })
    const before = await rows('select * from outbox_event')
    const { letterId } = await makeDead(db, { eventId: original, held: true })
    const amended = await amend(letterId)

    expect(await rows('select * from outbox_event where event_id = $1', [original])).toEqual(before)
    const [first] = before
    expect(await rows('select * from outbox_event where event_id = $1', [amended])).toEqual([
      {
        ...first,
        event_id: amended,
        xid: expect.anything(),
        payload: { total: 2 },
        headers: { amendedFrom: original, causationId: original, correlationId: original },
        created_at: expect.any(Date),
      },
    ])
    expect(
      await rows('select event_id, id, status, held, attempt_count, ordering_key from outbox_delivery'),
    ).toEqual([
      {
        event_id: amended,
        id: first?.['id'],
        status: 'PENDING',
        held: true,
        attempt_count: 0,
        ordering_key: 'order:1',
      },
    ])
    expect(await one(db.pool, `select last from outbox_sequence`)).toBe('1')
  })

  test('D3 resolves the dead letter with operator and a note that names the new event', async () => {
    await subscribe(db)
    const original = await insertEvent(db.pool)
    const { letterId } = await makeDead(db, { eventId: original })
    const amended = await amend(letterId)
    const note = `wrong total [amended as event ${amended}]`
    expect(await findDeadLetter(db.pool, db.quoted, letterId)).toMatchObject({
      resolved: true,
      resolution: 'amend',
      resolvedBy: 'kim',
      note,
    })
    expect(await rows('select operator, action, target, affected, note from outbox_operator_log')).toEqual([
      {
        operator: 'kim',
        action: 'amend',
        target: { deadLetter: Number(letterId), eventId: original, subscription: 'sub' },
        affected: 1,
        note,
      },
    ])
  })

  test('D3 goes to no other subscription: not to those that had the original, nor to those that came later', async () => {
    const first = await subscribe(db, { name: 'first' })
    await subscribe(db, { name: 'second' })
    const original = await insertEvent(db.pool)
    await claimAll()
    await doneAll(`subscription_id <> ${first}`)
    const letterId = await dieAt(first, original)
    await subscribe(db, { name: 'third' })
    const amended = await amend(letterId)
    expect(await rows('select subscription_id, event_id, status from outbox_delivery order by 1')).toEqual([
      { subscription_id: first, event_id: amended, status: 'PENDING' },
      { subscription_id: first + 1, event_id: original, status: 'DONE' },
    ])
    expect(await column(db.pool, 'select event_id from outbox_unmatched')).toEqual([])
  })

  test('is not unmatched where no subscription takes its type any more', async () => {
    await subscribe(db)
    const { letterId } = await makeDead(db, { eventId: await insertEvent(db.pool) })
    await db.pool.query(`update outbox_subscription set event_types = '{Other}'`)
    const amended = await amend(letterId)
    expect(await column(db.pool, 'select event_id from outbox_delivery')).toEqual([amended])
    expect(await column(db.pool, 'select event_id from outbox_unmatched')).toEqual([])
  })

  test('is kept by retention as long as its delivery is open, and so is the original', async () => {
    await subscribe(db)
    const original = await insertEvent(db.pool)
    const { letterId } = await makeDead(db, { eventId: original })
    const amended = await amend(letterId)
    const forget = 'select outbox_forget($1::uuid[])'
    expect(await one(db.pool, forget, [[original, amended]])).toBe(0)
    await claimAll()
    await doneAll('true')
    expect(await one(db.pool, forget, [[original, amended]])).toBe(2)
    expect(await column(db.pool, 'select event_id from outbox_delivery')).toEqual([])
  })

  test('may die and be amended again', async () => {
    await subscribe(db)
    const original = await insertEvent(db.pool)
    const { letterId } = await makeDead(db, { eventId: original })
    const amended = await amend(letterId)
    const again = await makeDead(db, { eventId: amended })
    const last = await amend(again.letterId, { total: 3 })
    expect(await column(db.pool, 'select event_id from outbox_delivery')).toEqual([last])
    expect(await one(db.pool, 'select headers from outbox_event where event_id = $1', [last])).toEqual({
      amendedFrom: amended,
      causationId: amended,
      correlationId: original,
    })
  })
})

async function claimAll(): Promise<void> {
  await db.pool.query(
    `update outbox_delivery set status = 'PROCESSING', fresh = false, held = false, next_retry_at = null, locked_by = 'w',
            locked_until = now(), lease_token = 1`,
  )
}

async function doneAll(which: string): Promise<void> {
  await db.pool.query(
    `update outbox_delivery set status = 'DONE', fresh = false, processed_at = now(), locked_by = null, locked_until = null,
            lease_token = null where ${which}`,
  )
}

async function dieAt(subscriptionId: number, eventId: string): Promise<string> {
  return one(
    db.pool,
    `with dead as (
       update outbox_delivery set status = 'DEAD', fresh = false, locked_by = null, locked_until = null, lease_token = null,
              last_error_code = 'BOOM' where subscription_id = $1 returning *)
     insert into outbox_dead_letter (subscription, subscription_id, lane, position, event_id, stream, event_type,
            schema_version, aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at, error_code,
            error_message, retry_count)
     select 'first', d.subscription_id, d.lane, d.id, e.event_id, e.stream, e.event_type, 1, 'order', '1', null,
            e.payload, e.headers, e.occurred_at, 'BOOM', 'it failed', 0
       from dead d join outbox_event e on e.event_id = $2 returning id`,
    [subscriptionId, eventId],
  )
}

describe('what cannot be amended stays as it is', () => {
  const everything = async (): Promise<unknown[]> => [
    await rows('select * from outbox_event order by event_id'),
    await rows('select * from outbox_delivery order by id'),
    await rows('select * from outbox_dead_letter order by id'),
    await rows('select * from outbox_amendment'),
  ]

  test('an unknown one, one that was decided on, one whose subscription is retired', async () => {
    await subscribe(db)
    const { letterId } = await makeDead(db, { eventId: await insertEvent(db.pool) })
    const other = await makeDead(db, { eventId: await insertEvent(db.pool) })
    await closeDeadLetter(db.pool, db.quoted, 'resolve', letterId, 'lee', null)
    await db.pool.query(`select outbox_retire('sub', 'kim')`)
    const before = await everything()
    await expect(amend('999')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(amend(letterId)).rejects.toMatchObject({ code: 'INVALID_STATE' })
    await expect(amend(other.letterId)).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('does not take events'),
    })
    expect(await everything()).toEqual(before)
  })

  test('without a name or a payload', async () => {
    await subscribe(db)
    const { letterId } = await makeDead(db, { eventId: await insertEvent(db.pool) })
    const before = await everything()
    expect(await refusal(db.pool.query(`select outbox_amend($1, '{}', ' ')`, [letterId]))).toBe('22023')
    expect(await refusal(db.pool.query(`select outbox_amend($1, null, 'kim')`, [letterId]))).toBe('22004')
    expect(await everything()).toEqual(before)
  })
})

test('nobody gets a number or loses a delivery by calling his own event amended', async () => {
  await subscribe(db)
  const headers = `'{"amendedFrom": "x"}'`
  await db.pool.query(
    `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, sequence, payload, headers)
     values ('shop.order', 'OrderPlaced', 'order', '1', 77, '{}', ${headers})`,
  )
  expect(await one(db.pool, 'select sequence from outbox_event')).toBe('1')
  expect(await refusal(db.pool.query('delete from outbox_delivery'))).toBe('55000')
})
