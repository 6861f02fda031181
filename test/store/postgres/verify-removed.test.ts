import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { RegisteredSubscription } from '../../../src/store/subscription-store.ts'
import { join } from '../contract/helpers.ts'
import { createProofDatabase, type ProofDatabase, publish, sabotage, settle } from './proof-fixtures.ts'

let db: ProofDatabase
let sub: RegisteredSubscription
let ids: readonly string[]

/** Three events: two DONE, one PENDING. Then the row of their subscription is deleted by force. */
beforeEach(async () => {
  db = await createProofDatabase()
  sub = await join(db.worker)
  ids = await publish(db, 3)
  await settle(db, sub, 2)
})
afterEach(async () => {
  await db.drop()
})

const NONE = { count: 0, eventIds: [] }
const remove = (): Promise<void> => sabotage(db, 'delete from outbox_subscription where id = $1', [sub.id])

describe('a subscription whose row was deleted by force', () => {
  test('is shown by its number with the deliveries that it left, none of which anybody will deliver', async () => {
    await remove()
    expect(await db.proof.verify()).toMatchObject({
      holds: false,
      subscriptions: [
        {
          subscription: `#${sub.id}`,
          state: 'removed',
          matched: 3,
          counts: { DONE: 2, PENDING: 1, PROCESSING: 0, DEAD: 0 },
          holds: false,
          missing: NONE,
          surplus: NONE,
          impossible: { count: 3, eventIds: ids },
        },
      ],
    })
  })

  test('misses what was published for it since', async () => {
    await remove()
    const later = await publish(db, 2)
    const { subscriptions } = await db.proof.verify()
    expect(subscriptions).toMatchObject([{ matched: 5, missing: { count: 2, eventIds: later } }])
  })

  test('is told from a later one of its name, which holds by itself', async () => {
    await remove()
    await join(db.worker)
    await publish(db, 1)
    const { subscriptions } = await db.proof.verify()
    expect(subscriptions).toMatchObject([
      { subscription: 'sub', state: 'active', matched: 1, holds: true },
      { subscription: `#${sub.id}`, state: 'removed', matched: 4, missing: { count: 1 }, holds: false },
    ])
    expect((await db.proof.verify({ subscription: 'sub' })).subscriptions).toHaveLength(1)
  })

  test('is seen by its deliveries alone where its scope was deleted too', async () => {
    await remove()
    await sabotage(db, 'delete from outbox_scope')
    const { subscriptions } = await db.proof.verify()
    expect(subscriptions).toMatchObject([
      { subscription: `#${sub.id}`, matched: 0, surplus: { count: 3, eventIds: ids }, holds: false },
    ])
  })

  test('is seen by its scope alone where nothing was ever published for it', async () => {
    await sabotage(db, 'delete from outbox_delivery')
    await sabotage(db, 'delete from outbox_event')
    await remove()
    expect(await db.proof.verify()).toMatchObject({
      holds: false,
      subscriptions: [{ subscription: `#${sub.id}`, matched: 0, holds: false }],
    })
  })
})
