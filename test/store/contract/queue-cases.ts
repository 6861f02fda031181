import assert from 'node:assert/strict'
import type { ContractCase } from './harness.ts'
import {
  aggregates,
  beat,
  claim,
  DONE,
  dead,
  FAILURE,
  join,
  LEASE_MS,
  retryLater,
  retryNow,
  settled,
} from './helpers.ts'

const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => `a${index + 1}`)

/** What every store promises of unordered subscriptions. */
export const queueCases: readonly ContractCase[] = [
  {
    name: 'E2 two workers never claim the same delivery, and together they claim all',
    async run(harness) {
      const [one, two] = [harness.worker(), harness.worker()]
      const sub = await join(one)
      await harness.publish(numbers(40))
      const batches = await Promise.all([
        claim(one, sub, 'w1', 25),
        claim(two, sub, 'w2', 25),
        claim(one, sub, 'w1', 25),
        claim(two, sub, 'w2', 25),
      ])
      const all = batches.flatMap(aggregates)
      assert.deepEqual(all.toSorted(), numbers(40).toSorted())
      for (const batch of batches) assert.ok(batch.length <= 25)
    },
  },
  {
    name: 'a claim comes in position order, whatever order the database returned the rows in',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(numbers(50))
      assert.deepEqual(aggregates(await claim(store, sub, 'w1')), numbers(50))
    },
  },
  {
    name: 'E3 a claimed delivery shows state, attempt and lease in its row, and DONE clears the lease',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(['a1'])
      const [delivery] = await claim(store, sub, 'w1')
      assert.ok(delivery)
      const [processing] = await harness.deliveries('sub')
      assert.equal(processing?.status, 'PROCESSING')
      assert.equal(processing?.lockedBy, 'w1')
      const report = await store.settle([settled(delivery, DONE)])
      assert.deepEqual(report, { lost: [], over: [], dead: [], committed: [], busy: [] })
      const [done] = await harness.deliveries('sub')
      assert.equal(done?.status, 'DONE')
      assert.equal(done?.lockedBy, null)
      assert.deepEqual(await claim(store, sub, 'w1'), [])
    },
  },
  {
    name: 'a failed delivery waits for its retry and keeps attempts and error',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(['a1', 'a2'])
      const [first, second] = await claim(store, sub, 'w1')
      assert.ok(first && second)
      await store.settle([settled(first, retryLater), settled(second, retryNow)])
      const again = await claim(store, sub, 'w1')
      assert.deepEqual(aggregates(again), ['a2'])
      assert.equal(again[0]?.attempt, 2)
      const [waiting] = await harness.deliveries('sub')
      assert.equal(waiting?.status, 'PENDING')
      assert.equal(waiting?.errorCode, FAILURE.code)
      assert.equal(waiting?.attempts, 1)
    },
  },
  {
    name: 'D1 due retries never keep new events from being claimed',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(numbers(40))
      const failing = await claim(store, sub, 'w1')
      await store.settle(failing.map((delivery) => settled(delivery, retryNow)))
      await harness.publish(['fresh'])
      const mixed = await claim(store, sub, 'w1', 20)
      assert.ok(aggregates(mixed).includes('fresh'))
      assert.ok(mixed.length <= 20)
    },
  },
  {
    name: 'a dead delivery has its dead letter from the same statement and is never claimed again',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(['a1'])
      const [delivery] = await claim(store, sub, 'w1')
      assert.ok(delivery)
      const report = await store.settle([settled(delivery, dead)])
      assert.equal(report.dead.length, 1)
      assert.equal(report.dead[0]?.eventId, delivery.event.eventId)
      assert.equal(report.dead[0]?.errorCode, FAILURE.code)
      assert.equal((await harness.deliveries('sub'))[0]?.status, 'DEAD')
      assert.deepEqual(await claim(store, sub, 'w1'), [])
    },
  },
  {
    name: 'a released delivery gets its attempt back and can be claimed at once',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(['a1'])
      const [delivery] = await claim(store, sub, 'w1')
      assert.ok(delivery)
      await store.settle([settled(delivery, { kind: 'release', delayMs: 0 })])
      const [again] = await claim(store, sub, 'w2')
      assert.equal(again?.attempt, 1)
    },
  },
  {
    name: 'E9 a lapsed lease is returned, and a settle with its token writes nothing and says so',
    async run(harness) {
      const [zombie, healthy] = [harness.worker(), harness.worker()]
      const sub = await join(zombie)
      await harness.publish(['a1'])
      const [stale] = await claim(zombie, sub, 'w1')
      assert.ok(stale)
      await harness.lapse('w1')
      const report = await healthy.recover([sub.id])
      assert.equal(report.returned.get(sub.id), 1)
      assert.equal(report.suspects.get(sub.id), 1)
      const [again] = await healthy.claimSuspects({
        subscriptionId: sub.id,
        workerId: 'w2',
        limit: 1,
        leaseMs: LEASE_MS,
      })
      assert.equal(again?.event.eventId, stale.event.eventId)
      for (const settlement of [DONE, retryNow, dead, { kind: 'release', delayMs: 0 } as const]) {
        const { lost, over, dead: letters } = await zombie.settle([settled(stale, settlement)])
        assert.equal(lost.length, 1)
        assert.deepEqual(over, [])
        assert.equal(letters.length, 0)
      }
      assert.equal((await harness.deliveries('sub'))[0]?.lockedBy, 'w2')
      assert.ok(again)
      assert.deepEqual((await healthy.settle([settled(again, DONE)])).lost, [])
      const { lost, over } = await healthy.settle([settled(again, DONE)])
      assert.equal(lost.length, 1, 'nothing was left to write')
      assert.deepEqual(over, lost, 'and it is DONE')
    },
  },
  {
    name: 'a heartbeat extends what is held, and tells what is lost',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(['a1', 'a2'])
      const held = await claim(store, sub, 'w1')
      assert.deepEqual((await beat(store, sub, 'w1', held)).lostDeliveries, [])
      await harness.lapse('w1')
      const report = await beat(store, sub, 'w1', held)
      assert.equal(report.lostDeliveries.length, 2)
      assert.equal((await store.recover([sub.id])).returned.get(sub.id), 2)
    },
  },
  {
    name: 'of two leases on one delivery, an old one and the one it was claimed under since, a heartbeat tells the old as lost',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(['a'])
      const [older] = await claim(store, sub, 'w1')
      assert.ok(older)
      await store.settle([settled(older, retryNow)])
      const [newer] = await claim(store, sub, 'w1')
      assert.ok(newer)
      const { lostDeliveries } = await beat(store, sub, 'w1', [older, newer])
      assert.deepEqual(lostDeliveries, [older])
    },
  },
  {
    name: 'a paused subscription is not claimed, and goes on where it was',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(['a1'])
      await store.setPaused('sub', true, 'kim')
      assert.deepEqual(await claim(store, sub, 'w1'), [])
      await store.setPaused('sub', false, 'kim')
      assert.deepEqual(aggregates(await claim(store, sub, 'w1')), ['a1'])
    },
  },
  {
    name: 'U2 each subscription has its own outcome of one event',
    async run(harness) {
      const store = harness.worker()
      const one = await join(store, { name: 'one' })
      const two = await join(store, { name: 'two' })
      await harness.publish(['a1'])
      const [good] = await claim(store, one, 'w1')
      const [bad] = await claim(store, two, 'w1')
      assert.ok(good && bad)
      await store.settle([settled(good, DONE), settled(bad, dead)])
      assert.equal((await harness.deliveries('one'))[0]?.status, 'DONE')
      assert.equal((await harness.deliveries('two'))[0]?.status, 'DEAD')
    },
  },
  {
    name: 'an event committed late, below positions already claimed, is still found under the low-water bound',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      const late = await harness.publishOpen(['late'])
      for (let round = 0; round < 5; round += 1) {
        await harness.publish([`early${round}`])
        const claimed = await claim(store, sub, 'w1')
        await store.settle(claimed.map((delivery) => settled(delivery, DONE)))
      }
      await late.commit()
      assert.deepEqual(aggregates(await claim(store, sub, 'w1')), ['late'])
    },
  },
]
