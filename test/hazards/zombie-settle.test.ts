import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery, Settlement } from '../../src/delivery/delivery.ts'
import { completeInTransaction } from '../../src/store/postgres/complete-in-transaction.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { beat, claim, DONE, dead, join, LEASE_MS, retryNow, settled } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { type Hazard, hazard, lapse, publish, type SteppedWorker } from './support.ts'

interface Scene {
  readonly h: Hazard
  readonly sub: RegisteredSubscription
  readonly zombie: SteppedWorker
  readonly healthy: SteppedWorker
  /** What w1 had in hand until its lease lapsed. */
  readonly stale: ClaimedDelivery
  /** The same delivery, claimed by w2 since. */
  readonly current: ClaimedDelivery
}

async function scene(h: Hazard): Promise<Scene> {
  const [zombie, healthy] = [h.worker('zombie'), h.worker('healthy')]
  const sub = await join(zombie.store)
  await publish(h.db.pool, ['a'])
  const [stale] = await claim(zombie.store, sub, 'w1')
  await lapse(h.db, 'w1')
  await healthy.store.recover([sub.id])
  const [current] = await healthy.store.claimSuspects({
    subscriptionId: sub.id,
    workerId: 'w2',
    limit: 1,
    leaseMs: LEASE_MS,
  })
  if (stale === undefined || current === undefined) throw new Error('nothing was claimed')
  return { h, sub, zombie, healthy, stale, current }
}

const row = ({ h }: Scene): Promise<unknown> => one(h.db.pool, 'select row_to_json(d) from outbox_delivery d')

const SETTLEMENTS: readonly Settlement[] = [
  DONE,
  retryNow,
  dead,
  { kind: 'release', delayMs: 0 },
  { kind: 'park' },
]

describe('a worker that finishes after its lease was given to another', () => {
  test.each(SETTLEMENTS)('E9 writes nothing and is told so: $kind', async (settlement) => {
    await using h = await hazard()
    const s = await scene(h)
    const before = await row(s)
    const report = await s.zombie.store.settle([settled(s.stale, settlement)])
    expect(report).toMatchObject({ lost: [{ position: s.stale.position }], dead: [] })
    expect(await row(s)).toEqual(before)
    expect((await s.healthy.store.settle([settled(s.current, DONE)])).lost).toEqual([])
  })

  test('cannot extend the lease it lost', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const before = await row(s)
    const report = await beat(s.zombie.store, s.sub, 'w1', [s.stale])
    expect(report.lostDeliveries).toHaveLength(1)
    expect(await row(s)).toEqual(before)
  })

  test('cannot complete it in a transaction of its own, which is rolled back with all its effects', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const client = await h.connect('handler')
    await client.query('begin; create table effect ()')
    const tx = { query: (text: string, params: readonly unknown[] = []) => client.query(text, [...params]) }
    await expect(completeInTransaction(tx, h.db.quoted, s.stale)).rejects.toMatchObject({
      code: 'LEASE_LOST',
    })
    await client.query('rollback')
    await completeInTransaction(tx, h.db.quoted, s.current)
    expect(await one(h.db.pool, 'select status from outbox_delivery')).toBe('DONE')
    expect(await one(h.db.pool, `select to_regclass('effect')`)).toBe(null)
  })

  test('whose settle began before the lease lapsed and is overtaken by recovery writes nothing', async () => {
    await using h = await hazard()
    const zombie = h.worker('zombie')
    const sub = await join(zombie.store)
    await publish(h.db.pool, ['a'])
    const [stale] = await claim(zombie.store, sub, 'w1')
    if (stale === undefined) throw new Error('nothing was claimed')
    await lapse(h.db, 'w1')
    // Recovery has written and not committed when the settle comes to the row.
    const recovering = await h.connect('recovering')
    await recovering.query(
      `begin; update outbox_delivery set status = 'PENDING', fresh = false, held = true, suspect = true, next_retry_at = now(),
              attempt_count = 0, locked_by = null, locked_until = null, lease_token = null`,
    )
    const settling = zombie.store.settle([settled(stale, DONE)])
    await h.untilBlocked('zombie')
    await recovering.query('commit')
    expect((await settling).lost).toHaveLength(1)
    expect(await one(h.db.pool, 'select status from outbox_delivery')).toBe('PENDING')
  })

  test('takes the delivery out of the hands of the other, when the token is not asked for', async () => {
    await using h = await hazard()
    const s = await scene(h)
    await h.db.pool.query(
      `update outbox_delivery set status = 'DONE', fresh = false, processed_at = now(), suspect = false, locked_by = null,
              locked_until = null, lease_token = null
        where subscription_id = $1 and id = $2 and status = 'PROCESSING'`,
      [s.sub.id, s.stale.position],
    )
    expect((await s.healthy.store.settle([settled(s.current, retryNow)])).lost).toHaveLength(1)
    expect(await one(h.db.pool, 'select status from outbox_delivery')).toBe('DONE')
  })
})
