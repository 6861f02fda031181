import assert from 'node:assert/strict'
import type { ContractCase } from './harness.ts'
import { aggregates, claim, DONE, definitionOf, join, settled, untilActive } from './helpers.ts'

/** What every store promises of registering subscriptions. */
export const subscriptionCases: readonly ContractCase[] = [
  {
    name: 'a subscription from now takes what commits from now on, one from the beginning takes all',
    async run(harness) {
      const store = harness.worker()
      await harness.publish(['old1', 'old2'])
      const now = await join(store, { name: 'now' })
      const all = await join(store, { name: 'all', startFrom: 'beginning' })
      await harness.publish(['new'])
      assert.deepEqual(aggregates(await claim(store, now, 'w')), ['new'])
      assert.deepEqual(aggregates(await claim(store, all, 'w')), ['old1', 'old2', 'new'])
    },
  },
  {
    name: 'a subscription from a time takes what was published since',
    async run(harness) {
      const store = harness.worker()
      await harness.publish(['old'])
      const never = await join(store, { name: 'never', startFrom: new Date('2999-01-01') })
      const since = await join(store, { name: 'since', startFrom: new Date('2001-01-01') })
      assert.deepEqual(await claim(store, never, 'w'), [])
      assert.deepEqual(aggregates(await claim(store, since, 'w')), ['old'])
    },
  },
  {
    name: 'a transaction open while a subscription registers is not missed',
    async run(harness) {
      const store = harness.worker()
      const open = await harness.publishOpen(['open'])
      const registered = await store.register(definitionOf())
      assert.deepEqual(await store.advanceJoining(), ['sub'], 'it waits for the transaction')
      await open.commit()
      await untilActive(store)
      assert.deepEqual(aggregates(await claim(store, registered, 'w')), ['open'])
    },
  },
  {
    name: 'registering again changes nothing, and a change of order is refused',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      assert.deepEqual(await join(store), sub)
      await assert.rejects(join(store, { orderBy: 'aggregate', lanes: 4 }), { code: 'SUBSCRIPTION_CONFLICT' })
    },
  },
  {
    name: 'a change of order is refused in the words of the options',
    async run(harness) {
      const store = harness.worker()
      await join(store)
      const message =
        /it is unordered \(order: 'none'\), and here it is ordered by aggregate in 4 lanes \(order: 'aggregate', lanes: 4\)/
      await assert.rejects(join(store, { orderBy: 'aggregate', lanes: 4 }), { message })
      await assert.rejects(join(store, { orderBy: 'aggregate', lanes: 1 }), {
        message: /in 1 lane .*oneAtATime/,
      })
      await assert.rejects(join(store, { orderBy: 'total', lanes: 1 }), {
        message: /here it is ordered as a whole \(order: 'total'\)/,
      })
    },
  },
  {
    name: 'what a subscription takes only widens, so that old and new code can run together',
    async run(harness) {
      const store = harness.worker()
      await join(store, { eventTypes: ['A'] })
      const wide = await join(store, { eventTypes: ['A', 'B'] })
      assert.deepEqual(wide.eventTypes, ['A', 'B'])
      assert.deepEqual((await join(store, { eventTypes: ['A'] })).eventTypes, ['A', 'B'])
      await harness.publish(['x'], { type: 'B' })
      assert.deepEqual(aggregates(await claim(store, wide, 'w')), ['x'])
    },
  },
  {
    name: 'events found by widening are claimed although their positions were passed before',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { eventTypes: ['A'] })
      const open = await harness.publishOpen(['late'])
      for (let round = 0; round < 3; round += 1) {
        await harness.publish(['x'], { type: 'A' })
        const claimed = await claim(store, sub, 'w')
        await store.settle(claimed.map((delivery) => settled(delivery, DONE)))
      }
      await store.register(definitionOf())
      await open.commit()
      await untilActive(store)
      assert.deepEqual(aggregates(await claim(store, sub, 'w')), ['late'])
    },
  },
  {
    name: 'E4 streams are matched by name and by wildcard, and a dot or underscore stands for itself',
    async run(harness) {
      const store = harness.worker()
      const exact = await join(store, { name: 'exact', streams: ['shop.order_v1'] })
      const wild = await join(store, { name: 'wild', streams: ['shop.*'] })
      await harness.publish(['a'], { stream: 'shop.order_v1' })
      await harness.publish(['b'], { stream: 'shop.orderXv1' })
      await harness.publish(['c'], { stream: 'shopXorder' })
      assert.deepEqual(aggregates(await claim(store, exact, 'w')), ['a'])
      assert.deepEqual(aggregates(await claim(store, wild, 'w')), ['a', 'b'])
    },
  },
  {
    name: 'D4 an event that no subscription takes is reported once, also from a mixed batch',
    async run(harness) {
      const store = harness.worker()
      await join(store, { eventTypes: ['Wanted'] })
      await harness.publish(['a', 'b'], { type: 'Unwanted' })
      await harness.publish(['c'], { type: 'Wanted' })
      const reported = await store.takeUnmatched(10, false)
      assert.deepEqual(
        reported.map(({ type }) => type),
        ['Unwanted', 'Unwanted'],
      )
      assert.deepEqual(await store.takeUnmatched(10, false), [])
    },
  },
]
