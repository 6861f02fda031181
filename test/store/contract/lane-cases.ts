import assert from 'node:assert/strict'
import type { LaneDelivery } from '../../../src/store/queue-store.ts'
import type { ContractCase, ContractHarness } from './harness.ts'
import {
  aggregates,
  beat,
  claimLanes,
  DONE,
  dead,
  join,
  LEASE_MS,
  retryLater,
  retryNow,
  settled,
  takeLanes,
  unpark,
} from './helpers.ts'

/** An ordered subscription of which so many events of one key are parked, though nothing stands before them. */
async function parkedKey(harness: ContractHarness, count: number, name = 'sub') {
  const store = harness.worker()
  const sub = await join(store, { name, orderBy: 'aggregate', lanes: 1 })
  await harness.publish(Array.from({ length: count }, () => 'a'))
  const lanes = await takeLanes(store, sub, 'w1')
  const claimed = await claimLanes(store, sub, 'w1', lanes)
  await store.settle(claimed.map((delivery) => settled(delivery, { kind: 'park' })))
  return { store, sub, lanes, positions: positionsOf(claimed) }
}

const positionsOf = (deliveries: readonly LaneDelivery[]): readonly string[] =>
  deliveries.map(({ position }) => position)

/** What every store promises of ordered subscriptions. */
export const laneCases: readonly ContractCase[] = [
  {
    name: 'U4 the deliveries of a key come in publishing order and only to the owner of its lane',
    async run(harness) {
      const [one, two] = [harness.worker(), harness.worker()]
      const sub = await join(one, { orderBy: 'aggregate' })
      await harness.publish(['a', 'b', 'a', 'c', 'b', 'a'])
      const lanes = await takeLanes(one, sub, 'w1')
      assert.equal(lanes.length, 4)
      assert.deepEqual(await takeLanes(two, sub, 'w2'), [], 'every lane is taken')
      const claimed = await claimLanes(one, sub, 'w1', lanes)
      assert.deepEqual(
        claimed.filter(({ key }) => key.endsWith(':a')).map(({ event }) => event.position),
        claimed
          .filter(({ key }) => key.endsWith(':a'))
          .map(({ event }) => event.position)
          .toSorted((x, y) => Number(x) - Number(y)),
      )
      assert.equal(claimed.length, 6)
      assert.deepEqual(await claimLanes(two, sub, 'w2', lanes), [], 'a lane is served to its owner alone')
    },
  },
  {
    name: 'two workers share the lanes fairly: a newcomer gets what the other gives back',
    async run(harness) {
      const [one, two] = [harness.worker(), harness.worker()]
      const sub = await join(one, { orderBy: 'aggregate' })
      const lanes = await takeLanes(one, sub, 'w1')
      await takeLanes(two, sub, 'w2')
      const { fairShare } = await one.takeLanes({
        subscriptionId: sub.id,
        workerId: 'w1',
        leaseMs: LEASE_MS,
        held: lanes,
      })
      assert.equal(fairShare, 2)
      await one.releaseLanes(sub.id, 'w1', lanes.slice(2))
      assert.equal((await takeLanes(two, sub, 'w2')).length, 2)
    },
  },
  {
    name: 'a failed event holds back its own key and no other; its retry lets the key go on in order',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { orderBy: 'aggregate' })
      await harness.publish(['a', 'b'])
      const lanes = await takeLanes(store, sub, 'w1')
      const [first, other] = await claimLanes(store, sub, 'w1', lanes)
      assert.ok(first && other)
      await store.settle([settled(first, retryLater), settled(other, DONE)])
      await harness.publish(['a', 'b', 'a'])
      assert.deepEqual(aggregates(await claimLanes(store, sub, 'w1', lanes)), ['b'])
      assert.deepEqual(await claimLanes(store, sub, 'w1', lanes), [])
      const waiting = (await harness.deliveries('sub')).filter((row) => row.status === 'PENDING')
      assert.equal(waiting.length, 3)
      assert.ok(waiting.every((row) => row.held))
    },
  },
  {
    name: 'events parked behind a retry follow it in order once it is done',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { orderBy: 'aggregate' })
      await harness.publish(['a'])
      const lanes = await takeLanes(store, sub, 'w1')
      const [first] = await claimLanes(store, sub, 'w1', lanes)
      assert.ok(first)
      await store.settle([settled(first, retryNow)])
      await harness.publish(['a', 'a'])
      const [retry, ...rest] = await claimLanes(store, sub, 'w1', lanes)
      assert.ok(retry)
      assert.equal(retry.event.eventId, first.event.eventId)
      assert.equal(retry.attempt, 2)
      assert.equal(retry.wasHeld, true)
      assert.deepEqual(rest, [])
      await store.settle([settled(retry, DONE)])
      await unpark(store, sub, [retry])
      const followers = await claimLanes(store, sub, 'w1', lanes)
      assert.equal(followers.length, 2)
      assert.ok(followers.every(({ attempt }) => attempt === 1))
    },
  },
  {
    name: 'of the events parked behind one that is done, so many are let go as are wanted, and they follow in order',
    async run(harness) {
      const { store, sub, lanes, positions } = await parkedKey(harness, 5)
      const key = { lane: 0, key: 'thing:a' }
      assert.deepEqual(await store.unpark(sub.id, [{ ...key, most: 2 }]), new Map([['thing:a', 2]]))
      assert.deepEqual(await store.unpark(sub.id, [{ ...key, most: 2 }]), new Map())
      assert.deepEqual(await store.unpark(sub.id, [{ ...key, most: 3 }]), new Map([['thing:a', 1]]))
      const claimed = await claimLanes(store, sub, 'w1', lanes)
      assert.deepEqual(positionsOf(claimed), positions.slice(0, 3))
      assert.deepEqual(await store.unpark(sub.id, [{ ...key, most: 9 }]), new Map([['thing:a', 2]]))
      assert.deepEqual(positionsOf(await claimLanes(store, sub, 'w1', lanes)), positions.slice(3))
    },
  },
  {
    name: 'nothing is let go behind an event that waits for its retry or is dead',
    async run(harness) {
      for (const ending of [retryLater, dead]) {
        const name = `behind-${ending.kind}`
        const { store, sub, lanes, positions } = await parkedKey(harness, 3, name)
        const key = { lane: 0, key: 'thing:a', most: 9 }
        await store.unpark(sub.id, [{ ...key, most: 1 }])
        const [first] = await claimLanes(store, sub, 'w1', lanes)
        assert.ok(first)
        assert.equal(first.position, positions[0])
        await store.settle([settled(first, ending)])
        assert.deepEqual(await store.unpark(sub.id, [key]), new Map())
        assert.deepEqual(await claimLanes(store, sub, 'w1', lanes), [])
      }
    },
  },
  {
    name: 'a dead event blocks its key until a person decides, where the subscription says block',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { orderBy: 'aggregate', onDead: 'block' })
      await harness.publish(['a'])
      const lanes = await takeLanes(store, sub, 'w1')
      const [first] = await claimLanes(store, sub, 'w1', lanes)
      assert.ok(first)
      await store.settle([settled(first, dead)])
      await harness.publish(['a', 'b'])
      assert.deepEqual(aggregates(await claimLanes(store, sub, 'w1', lanes)), ['b'])
    },
  },
  {
    name: 'a dead event lets its key go on, where the subscription says continue',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { orderBy: 'aggregate', onDead: 'continue' })
      await harness.publish(['a'])
      const lanes = await takeLanes(store, sub, 'w1')
      const [first] = await claimLanes(store, sub, 'w1', lanes)
      assert.ok(first)
      await store.settle([settled(first, dead)])
      await harness.publish(['a'])
      assert.deepEqual(aggregates(await claimLanes(store, sub, 'w1', lanes)), ['a'])
    },
  },
  {
    name: 'a successor takes lapsed lanes with what was in hand; the old owner can neither claim, extend nor settle',
    async run(harness) {
      const [zombie, heir] = [harness.worker(), harness.worker()]
      const sub = await join(zombie, { orderBy: 'aggregate' })
      await harness.publish(['a', 'a'])
      const old = await takeLanes(zombie, sub, 'w1')
      const inHand = await claimLanes(zombie, sub, 'w1', old)
      assert.equal(inHand.length, 2)
      await harness.lapse('w1')
      const lanes = await takeLanes(heir, sub, 'w2')
      assert.equal(lanes.length, 4)
      await harness.publish(['a'])
      assert.deepEqual(await claimLanes(zombie, sub, 'w1', old), [], 'the epoch fences the claim')
      const report = await beat(zombie, sub, 'w1', inHand, old)
      assert.equal(report.lostLanes.length, 4)
      assert.equal(report.lostDeliveries.length, 2)
      assert.equal((await zombie.settle(inHand.map((delivery) => settled(delivery, DONE)))).lost.length, 2)
      assert.deepEqual(await claimLanes(heir, sub, 'w2', lanes), [], 'nothing passes the suspects of its key')
      const request = { subscriptionId: sub.id, workerId: 'w2', limit: 1, leaseMs: LEASE_MS, lanes }
      const [suspect] = await heir.claimSuspects(request)
      assert.equal(suspect?.event.eventId, inHand[0]?.event.eventId, 'the first of the key comes first')
      assert.deepEqual(await heir.claimSuspects(request), [], 'the second waits for the first')
    },
  },
  {
    name: 'of suspects together there is at most the head of each key, and none is charged whoever takes their lanes',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { orderBy: 'aggregate', maxAttempts: 1 })
      const keys = Array.from({ length: 24 }, (_, n) => `key ${n}`)
      await harness.publish([...keys, ...keys])
      await claimLanes(store, sub, 'w1', await takeLanes(store, sub, 'w1'), 100)
      await harness.lapse('w1')
      const lanes = await takeLanes(store, sub, 'w2')
      const request = { subscriptionId: sub.id, workerId: 'w2', limit: 100, leaseMs: LEASE_MS, lanes }
      const group = await store.claimSuspects(request)
      assert.deepEqual(aggregates(group), keys)
      const firstOfLane = group.filter(({ lane }, n) => group.findIndex((one) => one.lane === lane) === n)
      assert.equal(firstOfLane.length, 4)
      const others = group.filter((one) => !firstOfLane.includes(one))
      await store.settle(others.map((one) => settled(one, DONE)))
      await harness.lapse('w2')
      const heirs = ['w3', 'w4', 'w5', 'w6']
      for (const heir of heirs) await beat(store, sub, heir, [])
      // Each takes one lane: to the last of them, what the others took is not in hand any more.
      for (const heir of heirs) assert.equal((await takeLanes(store, sub, heir)).length, 1)
      const left = (await harness.deliveries('sub')).filter(({ status }) => status !== 'DONE')
      assert.equal(left.length, keys.length + 4)
      for (const row of left) {
        assert.deepEqual([row.status, row.suspect, row.attempts, row.errorCode], ['PENDING', true, 0, null])
      }
    },
  },
  {
    name: 'what a worker has of its lanes without knowing it comes back when it renews them, and the rest stays in hand',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { orderBy: 'aggregate' })
      await harness.publish(['a', 'a', 'a', 'b'])
      const lanes = await takeLanes(store, sub, 'w1')
      const known = await claimLanes(store, sub, 'w1', lanes, 1)
      assert.equal((await claimLanes(store, sub, 'w1', lanes)).length, 3, 'of which the answer is lost')
      const request = { subscriptionId: sub.id, workerId: 'w1', leaseMs: LEASE_MS, suspects: false }
      const renewed = await store.renewLanes({
        ...request,
        lanes: lanes.map((lane) => ({ ...lane, tried: lane.epoch })),
        tokens: known.map(({ lease }) => lease.token),
      })
      assert.deepEqual(new Set(renewed.map(({ lane }) => lane)), new Set(lanes.map(({ lane }) => lane)))
      for (const row of (await harness.deliveries('sub')).filter(({ status }) => status === 'PENDING')) {
        assert.deepEqual([row.suspect, row.attempts], [false, 0])
      }
      assert.deepEqual(
        await claimLanes(store, sub, 'w1', lanes),
        [],
        'a claim that was sent before takes nothing',
      )
      const { lostLanes, lostDeliveries } = await beat(store, sub, 'w1', known, renewed)
      assert.deepEqual([lostLanes, lostDeliveries], [[], []])
      const again = await claimLanes(store, sub, 'w1', renewed)
      assert.deepEqual(aggregates([...known, ...again]).toSorted(), ['a', 'a', 'a', 'b'])
      assert.deepEqual((await store.settle([...known, ...again].map((one) => settled(one, DONE)))).lost, [])
      // The same again, which was sent before and comes late, changes nothing.
      const late = { ...request, tokens: [], lanes: lanes.map((lane) => ({ ...lane, tried: lane.epoch })) }
      assert.deepEqual(await store.renewLanes(late), [])
    },
  },
  {
    name: 'U1 a subscription in total order has one key and one lane',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { orderBy: 'total', lanes: 1 })
      await harness.publish(['a', 'b', 'c'])
      const lanes = await takeLanes(store, sub, 'w1')
      assert.equal(lanes.length, 1)
      const claimed = await claimLanes(store, sub, 'w1', lanes)
      assert.deepEqual(aggregates(claimed), ['a', 'b', 'c'])
      assert.deepEqual(new Set(claimed.map(({ key }) => key)), new Set(['']))
    },
  },
  {
    name: 'an ordered subscription that still joins is not served',
    async run(harness) {
      const store = harness.worker()
      const open = await harness.publishOpen(['before'])
      const sub = await store.register({
        name: 'sub',
        streams: null,
        eventTypes: null,
        orderBy: 'aggregate',
        lanes: 4,
        onDead: 'block',
        maxAttempts: 3,
        startFrom: 'now',
      })
      const lanes = await takeLanes(store, sub, 'w1')
      await harness.publish(['after'])
      assert.deepEqual(await store.advanceJoining(), ['sub'])
      assert.deepEqual(await claimLanes(store, sub, 'w1', lanes), [])
      await open.commit()
      while ((await store.advanceJoining()).length > 0);
      assert.deepEqual(aggregates(await claimLanes(store, sub, 'w1', lanes)), ['before', 'after'])
    },
  },
]
