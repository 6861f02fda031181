import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { definitionOf, join, untilActive } from '../contract/helpers.ts'
import { column, insertEvent, one } from './fixtures.ts'
import {
  createProofDatabase,
  type ProofDatabase,
  proofOf,
  publish,
  sabotage,
  settle,
} from './proof-fixtures.ts'

let db: ProofDatabase

beforeEach(async () => {
  db = await createProofDatabase()
})
afterEach(async () => {
  await db.drop()
})

const lose = (eventId: string | undefined): Promise<void> =>
  sabotage(db, 'delete from outbox_delivery where event_id = $1', [eventId])

describe('what a subscription is meant to have', () => {
  test('begins with its registration, unless it asked for more', async () => {
    await publish(db, 3)
    await join(db.worker, { name: 'from-now' })
    await join(db.worker, { name: 'from-beginning', startFrom: 'beginning' })
    await join(db.worker, { name: 'from-a-time', startFrom: new Date('2000-01-01') })
    await join(db.worker, { name: 'from-tomorrow', startFrom: new Date(Date.now() + 86_400_000) })
    await publish(db, 2)
    const { holds, subscriptions } = await db.proof.verify()
    expect(holds).toBe(true)
    expect(subscriptions.map(({ subscription, matched }) => [subscription, matched])).toEqual([
      ['from-a-time', 5],
      ['from-beginning', 5],
      ['from-now', 2],
      ['from-tomorrow', 2],
    ])
  })

  test('is what its streams and types say', async () => {
    await join(db.worker, { name: 'orders', streams: ['shop.*'] })
    await join(db.worker, { name: 'paid', eventTypes: ['OrderPaid'] })
    await publish(db, 2)
    await publish(db, 1, { type: 'OrderPaid' })
    await publish(db, 4, { stream: 'other' })
    const { holds, subscriptions } = await db.proof.verify()
    expect(holds).toBe(true)
    expect(subscriptions.map(({ matched }) => matched)).toEqual([3, 1])
  })

  test('does not hold for a delivery of an event that it does not take', async () => {
    const paid = await join(db.worker, { name: 'paid', eventTypes: ['OrderPaid'] })
    const [eventId] = await publish(db, 1)
    await sabotage(
      db,
      `insert into outbox_delivery (subscription_id, lane, id, event_id, max_attempts)
       select $1, 0, e.id, e.event_id, 3 from outbox_event e`,
      [paid.id],
    )
    expect(await proofOf(db, 'paid')).toMatchObject({
      matched: 0,
      holds: false,
      surplus: { count: 1, eventIds: [eventId] },
    })
  })

  test('of one that joins: what its sweep will bring is awaited, and not missed', async () => {
    const publisher = await db.pool.connect()
    await publisher.query('begin')
    await insertEvent(publisher)
    await db.worker.register(definitionOf())
    await publisher.query('commit')
    publisher.release()
    expect(await proofOf(db)).toMatchObject({ state: 'joining', matched: 0, awaited: 1, holds: true })
    await untilActive(db.worker)
    expect(await proofOf(db)).toMatchObject({ state: 'active', matched: 1, awaited: 0, holds: true })
  })

  test('of one that joins: what was lost before is missed all the same', async () => {
    await join(db.worker, { eventTypes: ['OrderPlaced'] })
    const [lost] = await publish(db, 1)
    await lose(lost)
    const open = await db.pool.connect()
    await open.query('begin; select pg_current_xact_id()')
    await db.worker.register(definitionOf({ eventTypes: ['OrderPlaced', 'OrderPaid'] }))
    const found = await proofOf(db)
    await open.query('rollback')
    open.release()
    expect(found).toMatchObject({ state: 'joining', awaited: 0, missing: { count: 1, eventIds: [lost] } })
  })

  test('of one that was in flight at its registration: once it has joined, a lost one is missed', async () => {
    const publisher = await db.pool.connect()
    await publisher.query('begin')
    const eventId = await insertEvent(publisher)
    await db.worker.register(definitionOf())
    await publisher.query('commit')
    publisher.release()
    await untilActive(db.worker)
    await lose(eventId)
    expect(await proofOf(db)).toMatchObject({ holds: false, missing: { count: 1, eventIds: [eventId] } })
  })

  test.each(['none', 'aggregate'] as const)(
    'of one that was widened, order %s: the old part from the old time on, the new from the new',
    async (orderBy) => {
      await join(db.worker, { orderBy, eventTypes: ['A'] })
      const [oldA] = await publish(db, 1, { type: 'A' })
      await publish(db, 1, { type: 'B' })
      await join(db.worker, { orderBy, eventTypes: ['A', 'B'] })
      const [newB] = await publish(db, 1, { type: 'B' })
      expect(await proofOf(db)).toMatchObject({ matched: 2, holds: true })
      await lose(oldA)
      await lose(newB)
      expect(await proofOf(db)).toMatchObject({ matched: 2, missing: { count: 2, eventIds: [oldA, newB] } })
    },
  )

  test('ends with its retirement, and what was discarded is accounted for', async () => {
    const sub = await join(db.worker)
    const [first] = await publish(db, 3)
    await settle(db, sub, 1)
    await db.pool.query(`select outbox_retire('sub', 'kim', discard => true)`)
    await db.worker.advanceJoining()
    await publish(db, 2)
    expect(await proofOf(db)).toMatchObject({
      state: 'retired',
      matched: 3,
      counts: { DONE: 1, DEAD: 2 },
      holds: true,
    })
    await lose(first)
    expect(await proofOf(db)).toMatchObject({ holds: false, missing: { count: 1, eventIds: [first] } })
  })

  test('may include an event that was being published while it was retired', async () => {
    await join(db.worker)
    const publisher = await db.pool.connect()
    await publisher.query('begin')
    await insertEvent(publisher)
    await db.pool.query(`select outbox_retire('sub', 'kim')`)
    await publisher.query('commit')
    publisher.release()
    await db.worker.advanceJoining()
    expect(await proofOf(db)).toMatchObject({ matched: 1, holds: true })
  })

  test('never includes what is published once its retirement is over', async () => {
    const sub = await join(db.worker)
    await db.pool.query(`select outbox_retire('sub', 'kim')`)
    while ((await column(db.pool, 'select outbox_close_retired()'))[0] !== 0);
    const [eventId] = await publish(db, 1)
    await sabotage(
      db,
      `insert into outbox_delivery (subscription_id, lane, id, event_id, max_attempts)
       select $1, 0, e.id, e.event_id, 3 from outbox_event e`,
      [sub.id],
    )
    expect(await proofOf(db)).toMatchObject({ holds: false, surplus: { count: 1, eventIds: [eventId] } })
  })

  test('of one that was retired before it had joined: what was not swept is not missed', async () => {
    await publish(db, 3)
    await db.worker.register(definitionOf({ startFrom: 'beginning' }))
    await db.pool.query(`select outbox_retire('sub', 'kim', discard => true)`)
    expect(await proofOf(db)).toMatchObject({ state: 'retired', matched: 0, holds: true })
  })

  test('L6 U8 is not what retention has removed', async () => {
    const sub = await join(db.worker)
    const ids = await publish(db, 4)
    await settle(db, sub, 3)
    await db.pool.query('select outbox_forget($1)', [ids])
    expect(await proofOf(db)).toMatchObject({ matched: 1, counts: { DONE: 0, PENDING: 1 }, holds: true })
  })

  test('is told for two subscriptions of one name, one of them retired', async () => {
    await join(db.worker)
    await publish(db, 1)
    await db.pool.query(`select outbox_retire('sub', 'kim', discard => true)`)
    await join(db.worker)
    await publish(db, 2)
    const { holds, subscriptions } = await db.proof.verify({ subscription: 'sub' })
    expect(holds).toBe(true)
    expect(subscriptions.map(({ state, matched }) => [state, matched])).toEqual([
      ['retired', 1],
      ['active', 2],
    ])
  })

  test('is one of the two where an event was put in the place of another, and for others the first', async () => {
    const sub = await join(db.worker)
    await join(db.worker, { name: 'other' })
    const [original] = await publish(db, 1)
    await sabotage(
      db,
      `with stand_in as (
         insert into outbox_event (id, stream, event_type, aggregate_type, aggregate_id, payload)
         overriding system value select id, stream, event_type, aggregate_type, aggregate_id, '{}' from outbox_event
         returning event_id)
       update outbox_delivery d set event_id = s.event_id from stand_in s where d.subscription_id = ${sub.id}`,
    )
    expect((await db.proof.verify()).holds).toBe(false)
    const standIn = await one<string>(db.pool, 'select event_id from outbox_event where event_id <> $1', [
      original,
    ])
    await db.pool.query(
      `create or replace view outbox_stand_in as
       select '${standIn}'::uuid as event_id, '${original}'::uuid as original, ${sub.id} as subscription_id`,
    )
    const { holds, subscriptions } = await db.proof.verify()
    expect(holds).toBe(true)
    expect(subscriptions.map(({ matched }) => matched)).toEqual([1, 1])
    const { subscriptions: reasons } = await db.proof.why(original ?? '')
    expect(reasons.map(({ reason }) => reason.kind)).toEqual(['no-worker', 'replaced'])
    await sabotage(db, 'delete from outbox_delivery where subscription_id = $1', [sub.id])
    expect(await proofOf(db)).toMatchObject({ holds: false, missing: { count: 1, eventIds: [original] } })
  })

  test('after a restore on another server is what it was, and what is published there', async () => {
    await join(db.worker)
    await publish(db, 2)
    const ahead = (value: string): string => `((${value})::text::bigint + 1000000000000)::text`
    await sabotage(db, `update outbox_event set xid = ${ahead('xid')}::xid8`)
    await sabotage(
      db,
      `update outbox_scope set began_snapshot = (${ahead('pg_snapshot_xmin(began_snapshot)')} || ':' ||
         ${ahead('pg_snapshot_xmax(began_snapshot)')} || ':')::pg_snapshot`,
    )
    await publish(db, 3)
    await join(db.worker, { name: 'registered-here' })
    await publish(db, 1)
    const { holds, subscriptions } = await db.proof.verify()
    expect(subscriptions.map(({ matched }) => matched)).toEqual([1, 6])
    expect(holds).toBe(true)
  })
})
