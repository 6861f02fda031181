import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import { claim, claimLanes, join, retryNow, settled, takeLanes } from '../store/contract/helpers.ts'
import { column } from '../store/postgres/fixtures.ts'
import { withLimit } from './plan.ts'
import { type Hazard, hazard, publish } from './support.ts'

const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `a${index}`)

const NESTED_LOOPS = `set enable_hashjoin = off; set enable_mergejoin = off; set enable_material = off;
  set enable_hashagg = off; set enable_sort = off; set enable_memoize = off; set enable_indexscan = off;
  set enable_bitmapscan = off`

const isAscending = (positions: readonly string[]): boolean =>
  positions.every((position, index) => index === 0 || Number(positions[index - 1]) < Number(position))

describe('the limit of a claim', () => {
  test('holds when the planner is made to use nested loops', async () => {
    await using h = await hazard()
    const { store, pool } = h.worker('w')
    const sub = await join(store)
    await publish(h.db.pool, numbered(50))
    await claim(store, sub, 'w', 0)
    const { text, values } = withLimit(pool.lastSent(/for update skip locked/), 3)
    const client = await h.connect('nested loops')
    await client.query(NESTED_LOOPS)
    const { rows } = await client.query(text, [...values])
    expect(rows).toHaveLength(3)
  })

  test('does not hold for an UPDATE with a sub-select, which is run again for every row', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store)
    await publish(h.db.pool, numbered(50))
    const client = await h.connect('nested loops')
    await client.query(NESTED_LOOPS)
    const { rows } = await client.query(
      `update outbox_delivery set status = 'PROCESSING', fresh = false, locked_by = 'w', locked_until = now(), lease_token = 1
        where subscription_id = $1 and id in (
          select d.id from outbox_delivery d where d.subscription_id = $1 and d.status = 'PENDING'
           order by d.id limit 3 for update skip locked)
       returning id`,
      [sub.id],
    )
    expect(rows.length).toBeGreaterThan(3)
  })

  test('holds for retries and fresh events together, with and without order', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const plain = await join(store, { name: 'plain' })
    const ordered = await join(store, { name: 'ordered', orderBy: 'aggregate' })
    const lanes = await takeLanes(store, ordered, 'w')
    await publish(h.db.pool, numbered(20))
    const failing = [...(await claim(store, plain, 'w')), ...(await claimLanes(store, ordered, 'w', lanes))]
    expect(failing).toHaveLength(40)
    await store.settle(failing.map((delivery) => settled(delivery, retryNow)))
    await publish(h.db.pool, numbered(20))
    for (const limit of [1, 3, 8]) {
      const mixed = await claim(store, plain, 'w', limit)
      expect(mixed).toHaveLength(limit)
      const ofLanes = await claimLanes(store, ordered, 'w', lanes, limit)
      expect(ofLanes.length).toBeLessThanOrEqual(limit)
      expect(ofLanes.length).toBeGreaterThan(0)
    }
  })
})

describe('claims of one at a time', () => {
  /** How many of 12 claims of one went to retries and how many to new events, while there are both. */
  async function share(h: Hazard, ordered: boolean, rewrite: (text: string) => string = (text) => text) {
    const { store, pool } = h.worker('w')
    const sub = await join(store, ordered ? { orderBy: 'aggregate', lanes: 1 } : {})
    const lanes = ordered ? await takeLanes(store, sub, 'w') : []
    const take = (limit: number): Promise<readonly ClaimedDelivery[]> =>
      ordered ? claimLanes(store, sub, 'w', lanes, limit) : claim(store, sub, 'w', limit)
    await publish(h.db.pool, numbered(20))
    await store.settle((await take(20)).map((delivery) => settled(delivery, retryNow)))
    await publish(
      h.db.pool,
      numbered(20).map((key) => `new ${key}`),
    )
    pool.rewrite = rewrite
    const taken: ClaimedDelivery[] = []
    for (let n = 0; n < 12; n += 1) taken.push(...(await take(1)))
    return {
      retries: taken.filter(({ attempt }) => attempt > 1).length,
      fresh: taken.filter(({ attempt }) => attempt === 1).length,
    }
  }

  test.each([false, true])('bring retries and new events in turn, ordered: %j', async (ordered) => {
    await using h = await hazard()
    expect(await share(h, ordered)).toEqual({ retries: 3, fresh: 9 })
  })

  test('never bring a new event if retries have at least one place of each claim', async () => {
    await using h = await hazard()
    const atLeastOne = (text: string): string => text.replaceAll('$7', 'greatest($7, 1)')
    expect(await share(h, false, atLeastOne)).toEqual({ retries: 12, fresh: 0 })
  })
})

describe('the order of a claim', () => {
  test('is the order of positions, although the rows lie in another order', async () => {
    await using h = await hazard()
    const { store, pool } = h.worker('w')
    const plain = await join(store, { name: 'plain' })
    const ordered = await join(store, { name: 'ordered', orderBy: 'aggregate' })
    const lanes = await takeLanes(store, ordered, 'w')
    await publish(h.db.pool, numbered(60))
    for (const id of await column(h.db.pool, 'select id from outbox_delivery order by md5(id::text)')) {
      await h.db.pool.query('update outbox_delivery set updated_at = now() where id = $1', [id])
    }
    await claim(store, plain, 'w', 0)
    const { text, values } = withLimit(pool.lastSent(/for update skip locked/), 60)
    const client = await h.connect('naive')
    await client.query('begin')
    const { rows } = await client.query<[number, string]>({
      text,
      values: [...values],
      rowMode: 'array',
    })
    await client.query('rollback')
    const returned = rows.map(([, position]) => position)
    expect(returned).toHaveLength(60)
    expect(isAscending(returned), 'what RETURNING gives').toBe(false)

    const claimed = await claim(store, plain, 'w')
    expect(claimed).toHaveLength(60)
    expect(isAscending(claimed.map(({ position }) => position))).toBe(true)
    const ofLanes = await claimLanes(store, ordered, 'w', lanes)
    expect(ofLanes).toHaveLength(60)
    expect(isAscending(ofLanes.map(({ position }) => position))).toBe(true)
  })
})
