import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { RegisteredSubscription } from '../../../src/store/subscription-store.ts'
import { claim, dead, join } from '../contract/helpers.ts'
import {
  createProofDatabase,
  type ProofDatabase,
  proofOf,
  publish,
  sabotage,
  settle,
} from './proof-fixtures.ts'

let db: ProofDatabase
let sub: RegisteredSubscription
let ids: readonly string[]

/** Five events: two DONE, one PROCESSING, one DEAD, one PENDING. */
beforeEach(async () => {
  db = await createProofDatabase()
  sub = await join(db.worker)
  ids = await publish(db, 5)
  await settle(db, sub, 2)
  await settle(db, sub, 1, dead)
  await claim(db.worker, sub, 'w', 1)
})
afterEach(async () => {
  await db.drop()
})

const NONE = { count: 0, eventIds: [] }
const only = (index: number): object => ({ count: 1, eventIds: [ids[index]] })

describe('verify', () => {
  test('adds up deliveries by state, and holds', async () => {
    const report = await db.proof.verify()
    expect(report).toMatchObject({ holds: true, since: null, until: null, at: expect.any(Date) })
    expect(report.subscriptions).toEqual([
      {
        subscription: 'sub',
        state: 'active',
        matched: 5,
        counts: { DONE: 2, PENDING: 1, PROCESSING: 1, DEAD: 1 },
        archived: 0,
        streamed: 0,
        awaited: 0,
        holds: true,
        missing: NONE,
        surplus: NONE,
        impossible: NONE,
      },
    ])
  })

  test('names the event whose delivery was deleted, and no other subscription suffers', async () => {
    await join(db.worker, { name: 'other', startFrom: 'beginning' })
    await sabotage(db, 'delete from outbox_delivery where event_id = $1 and subscription_id = $2', [
      ids[4],
      sub.id,
    ])
    const { holds, subscriptions } = await db.proof.verify()
    expect(holds).toBe(false)
    expect(subscriptions).toMatchObject([
      { subscription: 'other', matched: 5, holds: true },
      { subscription: 'sub', matched: 5, holds: false, missing: only(4), surplus: NONE, impossible: NONE },
    ])
  })

  test('names an event that was inserted with the triggers off, for every subscription that takes it', async () => {
    const eventId = randomUUID()
    await sabotage(
      db,
      `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
       values ($1, 'shop.order', 'OrderPlaced', 'order', '1', '{}')`,
      [eventId],
    )
    expect(await proofOf(db)).toMatchObject({
      matched: 6,
      holds: false,
      missing: { count: 1, eventIds: [eventId] },
    })
  })

  const phantom = (eventId: string, position: string): Promise<void> =>
    sabotage(
      db,
      `insert into outbox_delivery (subscription_id, lane, id, event_id, max_attempts) values ($1, 0, $2, $3, 3)`,
      [sub.id, position, eventId],
    )

  test('names a delivery without an event', async () => {
    const eventId = randomUUID()
    await phantom(eventId, '1000000')
    expect(await proofOf(db)).toMatchObject({
      matched: 5,
      counts: { PENDING: 2 },
      holds: false,
      surplus: { count: 1, eventIds: [eventId] },
    })
  })

  test('is not content with equal numbers: one lost and one made up is two faults', async () => {
    const eventId = randomUUID()
    await sabotage(db, 'delete from outbox_delivery where event_id = $1', [ids[0]])
    await phantom(eventId, '1000000')
    expect(await proofOf(db)).toMatchObject({
      matched: 5,
      counts: { DONE: 1, PENDING: 2, PROCESSING: 1, DEAD: 1 },
      holds: false,
      missing: only(0),
      surplus: { count: 1, eventIds: [eventId] },
    })
  })

  test('names a delivery that points to another event than stands at its position', async () => {
    const eventId = randomUUID()
    await sabotage(db, 'update outbox_delivery set event_id = $1 where event_id = $2', [eventId, ids[4]])
    expect(await proofOf(db)).toMatchObject({
      holds: false,
      missing: only(4),
      surplus: { count: 1, eventIds: [eventId] },
    })
  })

  test.each([
    ['DONE as if it had never been tried', 0, `status = 'PENDING', fresh = true, processed_at = null`],
    ['PENDING as if it were done', 4, `status = 'DONE', fresh = false, processed_at = now()`],
    ['DEAD as if it were done, while its letter waits', 2, `status = 'DONE', processed_at = now()`],
    [
      'DONE as if it were dead, without a letter',
      1,
      `status = 'DEAD', processed_at = null, last_error_code = 'X'`,
    ],
  ])('names a delivery whose status was changed with the triggers off: %s', async (_, index, change) => {
    await sabotage(db, `update outbox_delivery set ${change} where event_id = $1`, [ids[index]])
    expect(await proofOf(db)).toMatchObject({
      matched: 5,
      holds: false,
      missing: NONE,
      surplus: NONE,
      impossible: only(index),
    })
  })

  test('names a delivery in hand of which the lease was removed: nobody would return it', async () => {
    await sabotage(db, 'delete from outbox_lease')
    expect(await proofOf(db)).toMatchObject({ matched: 5, holds: false, impossible: only(3) })
  })

  test('names no more than it is asked to, and counts all', async () => {
    await sabotage(db, 'delete from outbox_delivery')
    const { subscriptions } = await db.proof.verify({ limit: 2 })
    expect(subscriptions[0]?.missing).toEqual({ count: 5, eventIds: ids.slice(0, 2) })
    const nothing = await db.proof.verify({ limit: 0 })
    expect(nothing.subscriptions[0]?.missing).toEqual({ count: 5, eventIds: [] })
  })

  test('looks at a window of time, and only there', async () => {
    const age = 'update outbox_event set created_at = now() - $1::interval where event_id = any ($2::uuid[])'
    await sabotage(db, age, ['3 days', ids.slice(0, 2)])
    await sabotage(db, age, ['1 day', ids.slice(2, 4)])
    await sabotage(db, 'delete from outbox_delivery where event_id = $1', [ids[0]])
    const ago = (hours: number): Date => new Date(Date.now() - hours * 3_600_000)
    const matched = async (since?: Date, until?: Date): Promise<readonly unknown[]> => {
      const window = { ...(since && { since }), ...(until && { until }) }
      const { subscriptions } = await db.proof.verify(window)
      return subscriptions.map((proof) => [proof.matched, proof.missing.count])
    }
    expect(await matched()).toEqual([[5, 1]])
    expect(await matched(ago(48))).toEqual([[3, 0]])
    expect(await matched(undefined, ago(48))).toEqual([[2, 1]])
    expect(await matched(ago(48), ago(1))).toEqual([[2, 0]])
    expect(await matched(ago(10), ago(5))).toEqual([[0, 0]])
    expect(await matched(ago(2_000), ago(1_000))).toEqual([[0, 0]])
  })
})
