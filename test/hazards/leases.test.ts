// A claim is one row in outbox_lease: by it, and by nothing else, its deliveries are found when their worker vanishes.
import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { beat, claim, DONE, join, retryLater, settled } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { type Hazard, hazard, lapse, publish, type SteppedWorker } from './support.ts'

interface Scene {
  readonly h: Hazard
  readonly sub: RegisteredSubscription
  /** Has claimed everything. */
  readonly first: SteppedWorker
  readonly taken: readonly ClaimedDelivery[]
  readonly second: SteppedWorker
}

async function claimed(h: Hazard, aggregateIds: readonly string[], limit = 100): Promise<Scene> {
  const first = h.worker('first')
  const sub = await join(first.store)
  await publish(h.db.pool, aggregateIds)
  const taken: ClaimedDelivery[] = []
  while (taken.length < aggregateIds.length) taken.push(...(await claim(first.store, sub, 'first', limit)))
  return { h, sub, first, taken, second: h.worker('second') }
}

const leases = ({ h }: Scene): Promise<string> => one(h.db.pool, 'select count(*) from outbox_lease')

/** How many the second worker gets back. */
const returned = async ({ second, sub }: Scene): Promise<number> =>
  (await second.store.recover([sub.id])).returned.get(sub.id) ?? 0

/** Locks rows, as a handler that completes its delivery in a transaction still open. */
async function locking(scene: Scene, which: string): Promise<() => Promise<unknown>> {
  const holder = await scene.h.connect('holder')
  await holder.query('begin')
  await holder.query(`select 1 from outbox_delivery where ${which} for update`)
  return () => holder.query('rollback')
}

const first = ({ taken: [delivery] }: Scene): ClaimedDelivery => delivery as ClaimedDelivery

describe('a claim whose worker vanishes', () => {
  async function rescueAfterLock(scene: Scene): Promise<number> {
    await lapse(scene.h.db, 'first')
    const release = await locking(scene, `id = ${first(scene).position}`)
    expect(await returned(scene)).toBe(1)
    await release()
    await scene.h.db.pool.query(`update outbox_lease set until = clock_timestamp() - interval '1 ms'`)
    return returned(scene)
  }

  test('keeps its lease until the last of it is back: what is locked comes back later', async () => {
    await using h = await hazard()
    const scene = await claimed(h, ['a', 'b'])
    expect(await rescueAfterLock(scene)).toBe(1)
    expect(await leases(scene)).toBe('0')
  })

  test('strands what is locked, if its lease ends with the others', async () => {
    await using h = await hazard()
    const scene = await claimed(h, ['a', 'b'])
    scene.second.pool.rewrite = (text) => text.replaceAll('(select token from remaining)', '(0)')
    expect(await rescueAfterLock(scene)).toBe(0)
    expect(await one(h.db.pool, `select count(*) from outbox_delivery where status = 'PROCESSING'`)).toBe('1')
  })

  test('gives back what was not settled', async () => {
    await using h = await hazard()
    const scene = await claimed(h, ['a', 'b', 'c'])
    await scene.first.store.settle([settled(first(scene), DONE)])
    await lapse(h.db, 'first')
    expect(await returned(scene)).toBe(2)
    expect(await leases(scene)).toBe('0')
  })

  test('does not wait behind others of which something is locked', async () => {
    await using h = await hazard()
    const names = Array.from({ length: 25 }, (_, n) => String(n))
    const scene = await claimed(h, names, 1)
    const free = scene.taken.at(-1)
    await lapse(h.db, 'first')
    const release = await locking(scene, `id <> ${free?.position}`)
    // The oldest first, so that the free one is the last to be looked at.
    await h.db.pool.query(
      `update outbox_lease set until = now() - interval '1 hour' where not $1 = any (positions)`,
      [free?.position],
    )
    expect(await returned(scene)).toBe(0)
    expect(await returned(scene)).toBe(1)
    await release()
  })
})

describe('a claim of which one delivery has lapsed', () => {
  async function partlyLapsed(scene: Scene): Promise<void> {
    const past = `clock_timestamp() - interval '1 ms'`
    const { pool } = scene.h.db
    await pool.query(`update outbox_delivery set locked_until = ${past} where id = $1`, [
      first(scene).position,
    ])
    await beat(scene.first.store, scene.sub, 'first', scene.taken)
  }

  const isExtended = (scene: Scene): Promise<boolean> =>
    one(scene.h.db.pool, 'select max(d.locked_until) = max(l.until) from outbox_delivery d, outbox_lease l')

  test('is not extended as a whole, so that somebody looks at it: the one is returned, the others stay in hand', async () => {
    await using h = await hazard()
    const scene = await claimed(h, ['a', 'b'])
    await partlyLapsed(scene)
    expect(await isExtended(scene)).toBe(false)
    await h.db.pool.query(`update outbox_lease set until = clock_timestamp() - interval '1 ms'`)
    expect(await returned(scene)).toBe(1)
    const inHand = await one(h.db.pool, 'select array_agg(id::text) from outbox_in_hand')
    expect(inHand).toEqual(scene.taken.slice(1).map(({ position }) => position))
  })

  test('would be kept from everybody, if a heartbeat extended what is left', async () => {
    await using h = await hazard()
    const scene = await claimed(h, ['a', 'b'])
    scene.first.pool.rewrite = (text) => text.replace(/having count.*t\.unsettled/, '')
    await partlyLapsed(scene)
    expect(await isExtended(scene)).toBe(true)
  })
})

describe('leases', () => {
  test('are gone when everything is settled, in whatever way', async () => {
    await using h = await hazard()
    const scene = await claimed(h, ['done', 'retried', 'locked'], 1)
    const [done, retried, locked] = scene.taken as [ClaimedDelivery, ClaimedDelivery, ClaimedDelivery]
    const release = await locking(scene, `id = ${locked.position}`)
    const batch = [settled(done, DONE), settled(retried, retryLater), settled(locked, DONE)]
    const { busy } = await scene.first.store.settle(batch)
    expect(busy.map(({ delivery }) => delivery.position)).toEqual([locked.position])
    expect(await leases(scene)).toBe('1')
    await release()
    await scene.first.store.settle(busy)
    expect(await leases(scene)).toBe('0')
  })

  test('are extended by a heartbeat as long as their deliveries are in hand', async () => {
    await using h = await hazard()
    const scene = await claimed(h, ['a', 'b', 'c'])
    await scene.first.store.settle([settled(first(scene), DONE)])
    const before = await one<Date>(h.db.pool, 'select until from outbox_lease')
    await beat(scene.first.store, scene.sub, 'first', scene.taken.slice(1))
    expect(await one<Date>(h.db.pool, 'select until from outbox_lease')).not.toEqual(before)
  })
})
