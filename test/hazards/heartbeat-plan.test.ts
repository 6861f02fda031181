import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import { beat, claim, DONE, join, settled } from '../store/contract/helpers.ts'
import { explain, mostRowsRead, mostRowsScanned, type PlanNode } from './plan.ts'
import { createOwnDatabase, hazard, lapse, publishMany, withoutAutovacuum } from './support.ts'

const BACKLOG = 10_000
const IN_HAND = 100

const asItIs = (text: string): string => text
const byToken = (text: string): string =>
  text.replace('and d.id = w.id and d.lease_token', 'and d.lease_token')

/** The plan of a heartbeat; the planner's figures are from when nothing was in hand, as they nearly always are. */
async function planOfHeartbeat(rewrite: (text: string) => string): Promise<PlanNode> {
  await using h = await hazard(createOwnDatabase)
  const { store, pool } = h.worker('w')
  pool.rewrite = rewrite
  const sub = await join(store)
  await publishMany(h, BACKLOG, 'n')
  const done = await claim(store, sub, 'w', BACKLOG - IN_HAND)
  await store.settle(done.map((delivery) => settled(delivery, DONE)))
  await withoutAutovacuum(h, 'outbox_delivery')
  await h.db.pool.query('vacuum analyze outbox_delivery')
  await beat(store, sub, 'w', await claim(store, sub, 'w', IN_HAND))
  const { text, values } = pool.lastSent(/alive as/)
  return await explain(await h.connect('explain'), { text: rewrite(text), values })
}

describe('a heartbeat for what is in hand', () => {
  test('reads it and nothing else', async () => {
    expect(mostRowsScanned(await planOfHeartbeat(asItIs))).toBeLessThanOrEqual(IN_HAND)
  })

  test('reads all there is for each, if it asks for the token alone', async () => {
    expect(mostRowsScanned(await planOfHeartbeat(byToken))).toBeGreaterThanOrEqual(IN_HAND * BACKLOG)
  })

  test('looks once at each, however many claims they came with', async () => {
    await using h = await hazard()
    const { store, pool } = h.worker('w')
    const sub = await join(store)
    await publishMany(h, IN_HAND, 'n')
    const taken: ClaimedDelivery[] = []
    while (taken.length < IN_HAND) taken.push(...(await claim(store, sub, 'w', 1)))
    await beat(store, sub, 'w', taken)
    const plan = await explain(await h.connect('explain'), pool.lastSent(/alive as/))
    expect(mostRowsRead(plan)).toBeLessThanOrEqual(IN_HAND * 3)
  })
})

describe('a recovery of what lapsed', () => {
  test('reads it and nothing else, of several subscriptions too', async () => {
    await using h = await hazard(createOwnDatabase)
    const { store, pool } = h.worker('w')
    const subs = [await join(store, { name: 'one' }), await join(store, { name: 'two' })]
    await publishMany(h, BACKLOG, 'n')
    const vanish = async (): Promise<void> => {
      for (const sub of subs) await claim(store, sub, 'w', IN_HAND)
      await lapse(h.db, 'w')
    }
    await vanish()
    await store.recover(subs.map(({ id }) => id))
    await vanish()
    const plan = await explain(await h.connect('explain'), pool.lastSent(/remaining as/))
    expect(plan['Actual Rows']).toBe(IN_HAND * subs.length)
    expect(mostRowsScanned(plan)).toBeLessThanOrEqual(IN_HAND * subs.length)
  })
})
