import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import { claim, claimLanes, DONE, join, LEASE_MS, settled, takeLanes } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { shutGate } from './locking.ts'
import { asIfHeld, type Hazard, hazard, publish, type SteppedWorker } from './support.ts'

const asItIs = (text: string): string => text
const byCtid = (text: string): string =>
  text
    .replaceAll('select r.id from', 'select r.ctid from')
    .replaceAll(/select d\.id( from \S+ d\s(?:(?!select d\.id)[^;])*?for update nowait)/g, 'select d.ctid$1')
    .replace(
      'd.id = any ((select ids from fresh)::bigint[])',
      'd.ctid = any ((select ids from fresh)::tid[])',
    )
    .replace('(select ids from fresh) as positions', `'{1,2,3}'::bigint[] as positions`)

const positionsOf = (claimed: readonly ClaimedDelivery[]): readonly string[] =>
  claimed.map(({ position }) => position)

const changeFirst = (h: Hazard): Promise<unknown> =>
  h.db.pool.query('update outbox_delivery set max_attempts = 20 where id = 1')

/** Two claims; a person changes the first row between the first claim's snapshot and its lock. */
async function claimTwice(rewrite: (text: string) => string): Promise<readonly (readonly string[])[]> {
  await using h = await hazard()
  const { store, pool } = h.worker('w')
  pool.rewrite = rewrite
  const sub = await join(store, { orderBy: 'aggregate', lanes: 1 })
  const lanes = await takeLanes(store, sub, 'w')
  await publish(h.db.pool, ['a', 'a', 'a'])
  const person = await h.connect('person')
  await person.query('begin')
  await person.query('select from outbox_lane for update')
  const claiming = claimLanes(store, sub, 'w', lanes)
  await h.untilBlocked('w')
  await changeFirst(h)
  await person.query('commit')
  return [positionsOf(await claiming), positionsOf(await claimLanes(store, sub, 'w', lanes))]
}

describe('a delivery that is changed after a claim began and before the claim comes to it', () => {
  test.each([
    ['short', asItIs],
    ['long', asIfHeld],
  ])('is not passed by later ones of its key, the %s way', async (_way, rewrite) => {
    expect((await claimTwice(rewrite)).flat()).toEqual(['1', '2', '3'])
  })

  test('is followed, the short way: it is claimed with the others', async () => {
    expect(await claimTwice(asItIs)).toEqual([['1', '2', '3'], []])
  })

  test('is passed if what was locked is updated by ctid', async () => {
    expect(await claimTwice(byCtid)).toEqual([['2', '3'], ['1']])
  })
})

describe('a delivery that is changed after a claim without order began', () => {
  /** What is claimed when something happens between the claim's snapshot and its lock. */
  async function claimAround(
    { h, worker }: { readonly h: Hazard; readonly worker: SteppedWorker },
    take: () => Promise<readonly ClaimedDelivery[]>,
    between: () => Promise<unknown>,
  ): Promise<readonly string[]> {
    const gate = await shutGate(h)
    worker.pool.rewrite = gate.after('s.paused_at is null')
    const claiming = take()
    await h.untilBlocked('w')
    await between()
    await gate.open()
    return positionsOf(await claiming)
  }

  test('is claimed as it is then', async () => {
    await using h = await hazard()
    const worker = h.worker('w')
    const sub = await join(worker.store)
    await publish(h.db.pool, ['a', 'b'])
    const claimed = await claimAround(
      { h, worker },
      () => claim(worker.store, sub, 'w'),
      () => changeFirst(h),
    )
    expect(claimed).toEqual(['1', '2'])
    expect(await one(h.db.pool, 'select max_attempts from outbox_delivery where id = 1')).toBe(20)
  })

  test('is left to whoever claimed it meanwhile', async () => {
    await using h = await hazard()
    const worker = h.worker('w')
    const other = h.worker('other')
    const sub = await join(worker.store)
    await publish(h.db.pool, ['a', 'b'])
    let first: readonly ClaimedDelivery[] = []
    const claimed = await claimAround(
      { h, worker },
      () => claim(worker.store, sub, 'w'),
      async () => {
        first = await claim(other.store, sub, 'other', 1)
      },
    )
    expect(claimed).toEqual(['2'])
    expect((await other.store.settle(first.map((delivery) => settled(delivery, DONE)))).lost).toEqual([])
  })

  test.each(['none', 'aggregate'] as const)('is claimed as a suspect, order %s', async (orderBy) => {
    await using h = await hazard()
    const worker = h.worker('w')
    const sub = await join(worker.store, { orderBy })
    const lanes = orderBy === 'none' ? [] : await takeLanes(worker.store, sub, 'w')
    await publish(h.db.pool, ['a', 'b'])
    await h.db.pool.query(
      'update outbox_delivery set fresh = false, held = true, suspect = true, next_retry_at = now()',
    )
    const request = { subscriptionId: sub.id, workerId: 'w', leaseMs: LEASE_MS, limit: 10, lanes }
    const claimed = await claimAround(
      { h, worker },
      () => worker.store.claimSuspects(request),
      () => changeFirst(h),
    )
    expect(claimed).toEqual(['1', '2'])
  })
})
