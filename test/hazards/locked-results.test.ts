import { describe, expect, test } from 'vitest'
import type { Settled } from '../../src/delivery/delivery.ts'
import { completeInTransaction } from '../../src/store/postgres/complete-in-transaction.ts'
import {
  beat,
  claim,
  claimLanes,
  DONE,
  join,
  retryNow,
  settled,
  takeLanes,
} from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { lockFirst, waitingForLocks } from './locking.ts'
import { type Hazard, hazard, publish } from './support.ts'

const statuses = ({ db }: Hazard): Promise<string[]> =>
  column(db.pool, 'select status from outbox_delivery order by id')

describe('a delivery that a person has locked while it is run', () => {
  /** Three events in hand, of which the first is locked. */
  async function running(h: Hazard) {
    const { store, pool } = h.worker('w')
    const sub = await join(store)
    await publish(h.db.pool, ['a', 'b', 'c'])
    const claimed = await claim(store, sub, 'w')
    const { unlock } = await lockFirst(h)
    return { store, pool, results: claimed.map((delivery) => settled(delivery, DONE)), unlock }
  }

  test('keeps no other result from being written, and is DONE as soon as it is let go', async () => {
    await using h = await hazard()
    const { store, results, unlock } = await running(h)
    const [first] = results
    const busy = { lost: [], over: [], dead: [], committed: [], busy: [first] }
    expect(await store.settle(results)).toEqual(busy)
    expect(await statuses(h)).toEqual(['PROCESSING', 'DONE', 'DONE'])
    expect(await store.settle(results.slice(0, 1))).toEqual(busy)
    await unlock()
    expect(await store.settle(results.slice(0, 1))).toEqual({ ...busy, busy: [] })
    expect(await statuses(h)).toEqual(['DONE', 'DONE', 'DONE'])
  })

  test('is waited for once, and not with every try', async () => {
    await using h = await hazard()
    const { store, pool, results } = await running(h)
    await store.settle(results)
    pool.sent.splice(0)
    await store.settle(results.slice(0, 1))
    expect(pool.sent.filter(({ text }) => text.includes('lock_timeout'))).toEqual([])
  })

  test('keeps every other result waiting if settling waits for it', async () => {
    await using h = await hazard()
    const { store, pool, results, unlock } = await running(h)
    pool.rewrite = (text) => text.replace(/'lock_timeout', '\d+'/, `'lock_timeout', '0'`)
    const settling = store.settle(results)
    await h.untilBlocked('w')
    expect(await statuses(h)).toEqual(['PROCESSING', 'PROCESSING', 'PROCESSING'])
    await unlock()
    expect(await settling).toMatchObject({ lost: [], busy: [] })
  })
})

describe('an event that its handler completes in a transaction still open', () => {
  /** Claims two events; the handler of the first completes it in a transaction that stays open. */
  async function completing(h: Hazard, rewrite: (text: string) => string = (text) => text) {
    const { store, pool } = h.worker('w')
    pool.rewrite = rewrite
    const sub = await join(store)
    await publish(h.db.pool, ['a', 'b'])
    const [first, second] = await claim(store, sub, 'w')
    if (first === undefined || second === undefined) throw new Error('nothing was claimed')
    const tx = await h.connect('handler')
    await tx.query('begin')
    await completeInTransaction(
      { query: (text, params = []) => tx.query(text, [...params]) },
      h.db.quoted,
      first,
    )
    const failures = [first, second].map((delivery) => settled(delivery, retryNow))
    const [ofFirst, ofSecond] = [{ ...settled(first, retryNow), completed: true }, settled(second, retryNow)]
    return { store, sub, tx, first, failures, ofFirst, ofSecond }
  }

  test('holds up no other result, and is DONE with its commit', async () => {
    await using h = await hazard()
    const { store, tx, ofFirst, ofSecond } = await completing(h)
    expect(await store.settle([ofFirst, ofSecond])).toEqual({
      lost: [],
      over: [],
      dead: [],
      committed: [],
      busy: [ofFirst],
    })
    expect(await statuses(h)).toEqual(['PROCESSING', 'PENDING'])
    await tx.query('commit')
    expect(await store.settle([ofFirst])).toMatchObject({
      lost: [],
      busy: [],
      committed: [{ position: '1' }],
    })
    expect(await statuses(h)).toEqual(['DONE', 'PENDING'])
  })

  test('is settled as decided when the transaction is rolled back', async () => {
    await using h = await hazard()
    const { store, tx, ofFirst } = await completing(h)
    expect((await store.settle([ofFirst])).busy).toEqual([ofFirst])
    await tx.query('rollback')
    expect(await store.settle([ofFirst])).toEqual({ lost: [], over: [], dead: [], committed: [], busy: [] })
    expect(await one(h.db.pool, 'select last_error_code from outbox_delivery where id = 1')).toBe('BOOM')
    expect(await statuses(h)).toEqual(['PENDING', 'PROCESSING'])
  })

  test('is not extended by a heartbeat, which says so', async () => {
    await using h = await hazard()
    const { store, sub, first } = await completing(h)
    const before = await one(h.db.pool, 'select locked_until::text from outbox_delivery where id = 1')
    const report = await beat(store, sub, 'w', [first])
    expect(report).toMatchObject({ lostDeliveries: [], busyDeliveries: [{ position: '1' }] })
    expect(await one(h.db.pool, 'select locked_until::text from outbox_delivery where id = 1')).toBe(before)
  })

  test('holds up every other result if settling waits for it', async () => {
    await using h = await hazard()
    const { store, tx, failures } = await completing(h, waitingForLocks)
    const settling = store.settle(failures)
    await h.untilBlocked('w')
    expect(await statuses(h)).toEqual(['PROCESSING', 'PROCESSING'])
    await tx.query('rollback')
    expect((await settling).lost).toEqual([])
  })
})

describe('results of several claims, the first of which is locked', () => {
  /** How many of three claims of one event each were tried row by row, where the first event is locked. */
  async function triedRowByRow(orderBy: 'none' | 'aggregate'): Promise<number> {
    await using h = await hazard()
    const { store, pool } = h.worker('w')
    const sub = await join(store, orderBy === 'none' ? {} : { orderBy, lanes: 1 })
    const lanes = orderBy === 'none' ? [] : await takeLanes(store, sub, 'w')
    const results: Settled[] = []
    for (const key of ['a', 'a', 'b']) {
      await publish(h.db.pool, [key])
      const claimed = await (orderBy === 'none' ? claim(store, sub, 'w') : claimLanes(store, sub, 'w', lanes))
      results.push(...claimed.map((delivery) => settled(delivery, DONE)))
    }
    expect(results).toHaveLength(3)
    await lockFirst(h)
    pool.sent.splice(0)
    await store.settle(results)
    return pool.sent.filter(({ text }) => text.includes('stopped as materialized')).length
  }

  test('are tried row by row where others may stand behind it on its key', async () => {
    expect(await triedRowByRow('aggregate')).toBe(3)
  })

  test('are written plainly where there is no order, all but its own', async () => {
    expect(await triedRowByRow('none')).toBe(1)
  })
})
