// What waits is let go or set aside as it is when it is locked, and not left because it was changed since the statement
// began: an UPDATE by key follows it, one by ctid would not find it.
import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import type { LaneDelivery } from '../../src/store/queue-store.ts'
import { claim, claimLanes, DONE, dead, join, settled, takeLanes, unpark } from '../store/contract/helpers.ts'
import { column } from '../store/postgres/fixtures.ts'
import { shutGate } from './locking.ts'
import { type Hazard, hazard, publish, replaceFunction, type SteppedWorker } from './support.ts'

const LOCKED_PARKED = `f.next_retry_at = 'infinity'`

/** Of three events of one key the first was claimed, and the others are parked. */
async function parked(h: Hazard, worker: SteppedWorker) {
  const sub = await join(worker.store, { orderBy: 'aggregate', lanes: 1 })
  const lanes = await takeLanes(worker.store, sub, 'w')
  await publish(h.db.pool, ['a', 'a', 'a'])
  const [first, ...others] = await claimLanes(worker.store, sub, 'w', lanes)
  await worker.store.settle(others.map((delivery) => settled(delivery, { kind: 'park' })))
  return { sub, lanes, first: first as LaneDelivery }
}

const stillParked = ({ db }: Hazard): Promise<string[]> =>
  column(db.pool, `select id from outbox_delivery where next_retry_at = 'infinity' order by id`)

const CHANGE = 'update outbox_delivery set max_attempts = 20 where id = 2'

describe('a parked delivery that is changed in the moment in which it is let go', () => {
  test('goes with the others when the one before it ends', async () => {
    await using h = await hazard()
    const worker = h.worker('w')
    const { sub, first } = await parked(h, worker)
    await worker.store.settle([settled(first, DONE)])
    const gate = await shutGate(h)
    worker.pool.rewrite = gate.after(LOCKED_PARKED)
    const letGo = unpark(worker.store, sub, [first])
    await h.untilBlocked('w')
    await h.db.pool.query(CHANGE)
    await gate.open()
    await letGo
    expect(await stillParked(h)).toEqual([])
  })

  test('goes when it is found to be parked behind nothing', async () => {
    await using h = await hazard()
    const worker = h.worker('w')
    const { sub, lanes, first } = await parked(h, worker)
    await worker.store.settle([settled(first, DONE)])
    const gate = await shutGate(h)
    worker.pool.rewrite = gate.after(LOCKED_PARKED)
    const looking = takeLanes(worker.store, sub, 'w', lanes)
    await h.untilBlocked('w')
    await h.db.pool.query(CHANGE)
    await gate.open()
    await looking
    expect(await stillParked(h)).toEqual(['3'])
  })

  test('goes with the others when a person resolves what it waits for', async () => {
    await using h = await hazard()
    const worker = h.worker('w')
    const { first } = await parked(h, worker)
    await worker.store.settle([settled(first, dead)])
    const person = await h.connect('person')
    await person.query(`begin; ${CHANGE}`)
    const operator = await h.connect('operator')
    const resolving = operator.query(`select outbox_resolve(id, 'kim') from outbox_dead_letter`)
    await h.untilBlocked('operator')
    await person.query('commit')
    await resolving
    expect(await stillParked(h)).toEqual([])
  })
})

test('a delivery that is claimed in the moment in which its subscription is retired is set aside with the others', async () => {
  await using h = await hazard()
  const worker = h.worker('w')
  const sub = await join(worker.store)
  await publish(h.db.pool, ['a', 'b'])
  const gate = await shutGate(h)
  await replaceFunction(h, 'outbox_discard', gate.after(`f.status in ('PENDING', 'PROCESSING')`))
  const retiring = h
    .connect('operator')
    .then((client) => client.query(`select discarded, locked from outbox_retire('sub', 'kim', 'old', true)`))
  await h.untilBlocked('operator')
  const inHand: readonly ClaimedDelivery[] = await claim(worker.store, sub, 'w', 1)
  await gate.open()
  expect((await retiring).rows).toEqual([{ discarded: 2, locked: 0 }])
  const { lost } = await worker.store.settle(inHand.map((delivery) => settled(delivery, DONE)))
  expect(lost).toHaveLength(1)
  expect(await column(h.db.pool, 'select error_message from outbox_dead_letter order by position')).toEqual([
    'Its subscription was retired while worker w had it in hand: it may or may not have been handled.',
    'Not delivered: its subscription was retired.',
  ])
})
