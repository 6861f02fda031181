// Rows in hand are written by key, and only if they are what the statement saw: an UPDATE by key would follow a row to
// whatever has become of it, and a position alone is the key of every subscription's delivery.
import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import { beat, claim, DONE, join, LEASE_MS, settled } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { shutGate } from './locking.ts'
import { type Hazard, hazard, lapse, publish } from './support.ts'

const VERSION = 'd.xmin = r.version'

const asItIs = (text: string): string => text
const whateverVersion = (text: string): string => text.replaceAll(VERSION, 'true')
const byPosition = (text: string): string =>
  text.replace(
    'd.id = any (g.ids) and d.subscription_id = any (array[g.subscription_id])',
    'd.id = any (g.ids) and g.subscription_id is not null',
  )

describe('a delivery that changes hands after a heartbeat began and before it comes to it', () => {
  /** Whether the heartbeat of the last holder extends the lease of the next. */
  async function extendsTheNext(rewrite: (text: string) => string): Promise<boolean> {
    await using h = await hazard()
    const [last, next] = [h.worker('last'), h.worker('next')]
    const sub = await join(last.store)
    await publish(h.db.pool, ['a'])
    const inHand = await claim(last.store, sub, 'last')
    const gate = await shutGate(h)
    last.pool.rewrite = (text) => rewrite(gate.after(VERSION)(text))
    const beating = beat(last.store, sub, 'last', inHand)
    await h.untilBlocked('last')
    await lapse(h.db, 'last')
    await next.store.recover([sub.id])
    await next.store.claimSuspects({ subscriptionId: sub.id, workerId: 'next', leaseMs: 30_000, limit: 1 })
    await gate.open()
    await beating
    return one(
      h.db.pool,
      `select d.locked_until > l.until from outbox_delivery d, outbox_lease l where l.worker_id = 'next'`,
    )
  }

  test('is not extended: it is not that worker’s any more', async () => {
    expect(await extendsTheNext(asItIs)).toBe(false)
  })

  test('is extended if the row is followed', async () => {
    expect(await extendsTheNext(whateverVersion)).toBe(true)
  })
})

describe('a delivery whose lease is extended after a recovery began and before it comes to it', () => {
  async function returnedFromItsHolder(rewrite: (text: string) => string): Promise<number> {
    await using h = await hazard()
    const [holder, other] = [h.worker('holder'), h.worker('other')]
    const sub = await join(holder.store)
    await publish(h.db.pool, ['a'])
    await claim(holder.store, sub, 'holder')
    await lapse(h.db, 'holder')
    const gate = await shutGate(h)
    other.pool.rewrite = (text) => rewrite(gate.after(VERSION)(text))
    const recovering = other.store.recover([sub.id])
    await h.untilBlocked('other')
    await h.db.pool.query(`update outbox_delivery set locked_until = clock_timestamp() + interval '1 minute'`)
    await gate.open()
    return (await recovering).returned.get(sub.id) ?? 0
  }

  test('stays in hand', async () => {
    expect(await returnedFromItsHolder(asItIs)).toBe(0)
  })

  test('is taken from its holder if the row is followed', async () => {
    expect(await returnedFromItsHolder(whateverVersion)).toBe(1)
  })
})

describe('an event that two subscriptions have in hand', () => {
  /** One worker has it for both. */
  async function both(h: Hazard, rewrite: (text: string) => string) {
    const { store, pool } = h.worker('w')
    const sub = await join(store, { name: 'one' })
    const other = await join(store, { name: 'two' })
    await publish(h.db.pool, ['a'])
    const [first] = await claim(store, sub, 'w')
    const [second] = await claim(store, other, 'w')
    if (first === undefined || second === undefined) throw new Error('nothing was claimed')
    pool.rewrite = rewrite
    return { store, sub, other, first, second }
  }

  async function lockOf(h: Hazard, { subscriptionId }: ClaimedDelivery): Promise<() => Promise<unknown>> {
    const person = await h.connect('person')
    await person.query('begin')
    await person.query('select from outbox_delivery where subscription_id = $1 for update', [subscriptionId])
    return () => person.query('rollback')
  }

  test('is extended for the one while somebody has the other locked', async () => {
    await using h = await hazard()
    const { store, sub, first, second } = await both(h, asItIs)
    const unlock = await lockOf(h, second)
    const { busyDeliveries, lostDeliveries } = await beat(store, sub, 'w', [first, second])
    expect([busyDeliveries, lostDeliveries]).toEqual([[second], []])
    await unlock()
  })

  test('makes the heartbeat wait if it goes by position alone', async () => {
    await using h = await hazard()
    const { store, sub, first, second } = await both(h, byPosition)
    const unlock = await lockOf(h, second)
    const beating = beat(store, sub, 'w', [first, second])
    await h.untilBlocked('w')
    await unlock()
    await beating
  })

  /** Whether the second is still in hand when the lease of the first has lapsed. */
  async function secondIsInHand(rewrite: (text: string) => string): Promise<boolean> {
    await using h = await hazard()
    const { store, sub, other, first, second } = await both(h, rewrite)
    await lapse(h.db, 'w')
    await h.db.pool.query(
      `update outbox_delivery set locked_until = clock_timestamp() + $2 * interval '1 ms'
        where subscription_id = $1`,
      [second.subscriptionId, LEASE_MS],
    )
    const { returned } = await store.recover([sub.id, other.id])
    expect(returned.get(first.subscriptionId)).toBe(1)
    return (await store.settle([settled(second, DONE)])).lost.length === 0
  }

  test('comes back from the one whose lease lapsed, and from no other', async () => {
    expect(await secondIsInHand(asItIs)).toBe(true)
  })

  test('comes back from both if recovery goes by position alone', async () => {
    expect(await secondIsInHand(byPosition)).toBe(false)
  })
})
