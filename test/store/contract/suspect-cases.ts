import assert from 'node:assert/strict'
import type { ContractCase } from './harness.ts'
import { aggregates, claim, claimAlone, DONE, join, LEASE_MS, settled } from './helpers.ts'

/** What every store promises of deliveries whose workers vanished. */
export const suspectCases: readonly ContractCase[] = [
  {
    name: 'a crash charges nobody at first: the neighbours become suspects with their attempt back',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store)
      await harness.publish(['a1', 'a2', 'a3'])
      await claim(store, sub, 'w1')
      await harness.lapse('w1')
      await store.recover([sub.id])
      for (const row of await harness.deliveries('sub')) {
        assert.equal(row.suspect, true)
        assert.equal(row.attempts, 0)
      }
      assert.deepEqual(await claim(store, sub, 'w2'), [], 'suspects are not claimed in batches')
    },
  },
  {
    name: 'a suspect that kills its worker again and again ends as a dead letter, its neighbours do not',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { maxAttempts: 1 })
      await harness.publish(['poison', 'innocent'])
      await claim(store, sub, 'w1')
      await harness.lapse('w1')
      await store.recover([sub.id])
      const request = { subscriptionId: sub.id, leaseMs: LEASE_MS }
      const poison = await claimAlone(store, { ...request, workerId: 'w2' })
      assert.equal(poison?.event.aggregateId, 'poison')
      await harness.lapse('w2')
      const report = await store.recover([sub.id])
      assert.equal(report.dead.length, 1)
      assert.equal(report.dead[0]?.errorCode, 'CRASHED')
      const innocent = await claimAlone(store, { ...request, workerId: 'w3' })
      assert.equal(innocent?.event.aggregateId, 'innocent')
      assert.ok(innocent)
      await store.settle([settled(innocent, DONE)])
      const rows = await harness.deliveries('sub')
      assert.deepEqual(rows.map((row) => row.status).toSorted(), ['DEAD', 'DONE'])
    },
  },
  {
    name: 'a suspect of whose claim nobody learns is not charged, nor is one whose lease was lost before it was marked',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { maxAttempts: 1 })
      await harness.publish(['a1'])
      await claim(store, sub, 'w1')
      await harness.lapse('w1')
      await store.recover([sub.id])
      const request = { subscriptionId: sub.id, limit: 1, leaseMs: LEASE_MS, workerId: 'w2' }
      const [suspect] = await store.claimSuspects(request)
      assert.ok(suspect)
      await harness.lapse('w2')
      const report = await store.recover([sub.id])
      assert.deepEqual([report.dead, report.suspects.get(sub.id)], [[], 1])
      assert.equal(await store.markAlone(suspect), false, 'it is nobody’s any more')
      const [row] = await harness.deliveries('sub')
      assert.deepEqual([row?.status, row?.suspect, row?.attempts], ['PENDING', true, 0])
    },
  },
  {
    name: 'suspects that were taken together are not charged for a crash, and are suspects again when given back',
    async run(harness) {
      const store = harness.worker()
      const sub = await join(store, { maxAttempts: 1 })
      await harness.publish(['a1', 'a2', 'a3'])
      await claim(store, sub, 'w1')
      await harness.lapse('w1')
      await store.recover([sub.id])
      const request = { subscriptionId: sub.id, leaseMs: LEASE_MS }
      const group = await store.claimSuspects({ ...request, limit: 2, workerId: 'w2' })
      assert.deepEqual(aggregates(group), ['a1', 'a2'])
      assert.equal(new Set(group.map(({ lease }) => lease.token)).size, 1)
      assert.ok(group.every(({ suspect, attempt }) => suspect && attempt === 1))
      await store.settle(group.slice(0, 1).map((one) => settled(one, { kind: 'release', delayMs: 0 })))
      await harness.lapse('w2')
      const report = await store.recover([sub.id])
      assert.deepEqual([report.dead, report.suspects.get(sub.id)], [[], 3])
      for (const row of await harness.deliveries('sub')) {
        assert.deepEqual([row.status, row.suspect, row.attempts, row.errorCode], ['PENDING', true, 0, null])
      }
      const again = await store.claimSuspects({ ...request, limit: 9, workerId: 'w3' })
      assert.deepEqual(aggregates(again), ['a1', 'a2', 'a3'], 'those of the crash come first')
    },
  },
]
