import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/runtime/clock.ts'
import { type Random, seededRandom } from '../../src/runtime/random.ts'
import type { HeldLane, LaneDelivery } from '../../src/store/queue-store.ts'
import {
  beat,
  claim,
  claimLanes,
  DONE,
  join,
  LEASE_MS,
  settled,
  takeLanes,
} from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { type Hazard, hazard, lapse, publish } from './support.ts'

const YEAR_MS = 365 * 24 * 3_600_000

/** A clock that is years off and leaps whenever it is read. */
function mad(offsetMs: number): Clock {
  let readings = 0
  const leap = (): number => {
    readings += 1
    return readings * YEAR_MS
  }
  return {
    now: () => new Date(1_790_000_000_000 + offsetMs + leap()),
    monotonicMs: () => leap(),
    sleep: () => Promise.resolve(),
  }
}

const leaseLeftMs = (h: Hazard): Promise<number> =>
  one(
    h.db.pool,
    `select (extract(epoch from min(locked_until) - clock_timestamp()) * 1000)::float8 from outbox_delivery`,
  )

describe.each([
  ['years ahead', 30 * YEAR_MS],
  ['years behind', -30 * YEAR_MS],
])('a worker whose own clock is %s', (_, offsetMs) => {
  test('has leases of the right length, and keeps and extends what is its own', async () => {
    await using h = await hazard()
    const { store } = h.worker('w1', mad(offsetMs))
    const sub = await join(store)
    await publish(h.db.pool, ['a', 'b'])
    const inHand = await claim(store, sub, 'w1')
    expect(inHand).toHaveLength(2)
    const left = await leaseLeftMs(h)
    expect(left).toBeGreaterThan(LEASE_MS - 10_000)
    expect(left).toBeLessThanOrEqual(LEASE_MS)
    expect((await h.worker('w2').store.recover([sub.id])).returned, 'nobody takes it away').toEqual(new Map())
    expect((await beat(store, sub, 'w1', inHand)).lostDeliveries).toEqual([])
    expect((await store.settle(inHand.map((delivery) => settled(delivery, DONE)))).lost).toEqual([])
  })

  test('takes nothing from others, neither deliveries nor lanes', async () => {
    await using h = await hazard()
    const [right, wrong] = [h.worker('w1').store, h.worker('w2', mad(offsetMs)).store]
    const plain = await join(right, { name: 'plain' })
    const ordered = await join(right, { name: 'ordered', orderBy: 'aggregate' })
    await publish(h.db.pool, ['a', 'b'])
    const lanes = await takeLanes(right, ordered, 'w1')
    const inHand = [...(await claim(right, plain, 'w1')), ...(await claimLanes(right, ordered, 'w1', lanes))]
    expect(inHand).toHaveLength(4)
    expect((await wrong.recover([plain.id, ordered.id])).returned).toEqual(new Map())
    expect(await takeLanes(wrong, ordered, 'w2')).toEqual([])
    expect(await claim(wrong, plain, 'w2')).toEqual([])
    expect((await right.settle(inHand.map((delivery) => settled(delivery, DONE)))).lost).toEqual([])
  })
})

describe('leases that are set or judged by the clock of a worker', () => {
  test('are lost at once by one whose clock is behind, and taken away by one whose clock is ahead', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store)
    await publish(h.db.pool, ['a', 'b'])
    const [behind, ahead] = await claim(store, sub, 'w1')
    const hour = 3_600_000
    const now = Date.now()
    await h.db.pool.query('update outbox_delivery set locked_until = $2 where id = $1', [
      behind?.position,
      new Date(now - hour + LEASE_MS),
    ])
    await h.db.pool.query('update outbox_lease set until = $1', [new Date(now - hour + LEASE_MS)])
    expect((await store.recover([sub.id])).returned.get(sub.id)).toBe(1)
    const { rowCount } = await h.db.pool.query(
      `update outbox_delivery set status = 'PENDING', fresh = false, held = true, next_retry_at = now(), locked_by = null,
              locked_until = null, lease_token = null where id = $1 and locked_until < $2`,
      [ahead?.position, new Date(now + hour)],
    )
    expect(rowCount).toBe(1)
  })
})

describe('the lease of a delivery in a lane', () => {
  /** One step of a worker, chosen at random, as a worker might take it. */
  async function randomStep(h: Hazard, random: Random, worker: RandomWorker): Promise<void> {
    const { store, sub, workerId } = worker
    const roll = random()
    if (roll < 0.25) {
      worker.lanes = [...worker.lanes, ...(await takeLanes(store, sub, workerId, worker.lanes))]
    } else if (roll < 0.55) {
      const limit = 1 + Math.floor(random() * 3)
      worker.inHand.push(...(await claimLanes(store, sub, workerId, worker.lanes, limit)))
    } else if (roll < 0.75) {
      // A heartbeat is composed from what is known: a delivery whose claim has not come back is not in it.
      const known = worker.inHand.filter(() => random() < 0.7)
      const { lostLanes, lostDeliveries } = await beat(store, sub, workerId, known, worker.lanes)
      const gone = new Set(lostLanes.map(({ lane }) => lane))
      worker.lanes = worker.lanes.filter(({ lane }) => !gone.has(lane))
      worker.inHand = worker.inHand.filter(
        ({ lane, position }) => !gone.has(lane) && !lostDeliveries.some((lost) => lost.position === position),
      )
    } else if (roll < 0.9) {
      const done = worker.inHand.splice(0, 2)
      await store.settle(done.map((delivery) => settled(delivery, DONE)))
    } else {
      await lapse(h.db, workerId)
    }
  }

  interface RandomWorker {
    readonly store: ReturnType<Hazard['worker']>['store']
    readonly sub: Awaited<ReturnType<typeof join>>
    readonly workerId: string
    lanes: readonly HeldLane[]
    inHand: LaneDelivery[]
  }

  test('never outlives the lease of its lane, whatever workers do', async () => {
    await using h = await hazard()
    const random = seededRandom(99)
    const { store } = h.worker('w')
    const sub = await join(store, { orderBy: 'aggregate' })
    const workers = ['w1', 'w2', 'w3'].map(
      (workerId): RandomWorker => ({ store, sub, workerId, lanes: [], inHand: [] }),
    )
    let everClaimed = 0
    for (let step = 0; step < 300; step += 1) {
      if (step % 10 === 0) await publish(h.db.pool, ['a', 'b', 'c', 'd', 'e'])
      const worker = workers[Math.floor(random() * workers.length)]
      if (worker !== undefined) await randomStep(h, random, worker)
      everClaimed = Math.max(everClaimed, workers.flatMap(({ inHand }) => inHand).length)
      const outliving = await one(
        h.db.pool,
        `select count(*)::int from outbox_delivery d join outbox_lane l using (subscription_id, lane)
          where d.status = 'PROCESSING' and d.locked_until > l.until`,
      )
      expect(outliving, `after step ${step}`).toBe(0)
    }
    expect(everClaimed).toBeGreaterThan(1)
  })
})
