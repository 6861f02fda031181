import { describe, expect, test } from 'vitest'
import { claim, DONE, join, settled } from '../store/contract/helpers.ts'
import { explain, mostRowsScanned, withLimit } from './plan.ts'
import type { Sent } from './stepping-pool.ts'
import { createOwnDatabase, type Hazard, hazard, publishMany, withoutAutovacuum } from './support.ts'

const BACKLOG = 20_000
const HALF = BACKLOG / 2
const LIMIT = 100
/** A claim of many returns its deliveries as one row, and each of their events. */
const RETURNED = 1 + LIMIT

/** As the primary key might begin. It looks as good as the index of what is fresh. */
const LIKE_A_LANE = 'create unique index like_a_lane on outbox_delivery (subscription_id, lane, id)'

/** A claim from a backlog of which half is done, with statistics from when nothing was, and no bound to begin at. */
async function claimHalfWay(h: Hazard): Promise<Pick<Sent, 'text' | 'values'>> {
  const { store, pool } = h.worker('w')
  const sub = await join(store)
  await publishMany(h, BACKLOG, 'n')
  await withoutAutovacuum(h, 'outbox_delivery')
  await h.db.pool.query('vacuum analyze outbox_delivery')
  const done = await claim(store, sub, 'w', HALF)
  const sent = pool.lastSent(/for update skip locked\) as ids/)
  await store.settle(done.map((delivery) => settled(delivery, DONE)))
  return withLimit(sent, LIMIT)
}

describe('a backlog of which much is done', () => {
  test('is not read from its beginning: a claim reads the rows it takes', async () => {
    await using h = await hazard(createOwnDatabase)
    const plan = await explain(await h.connect('explain'), await claimHalfWay(h))
    expect(plan['Actual Rows']).toBe(RETURNED)
    expect(mostRowsScanned(plan)).toBeLessThanOrEqual(LIMIT)
  })

  test('is read from its beginning where another index has the same columns', async () => {
    await using h = await hazard(createOwnDatabase)
    await h.db.pool.query(`
      drop index outbox_delivery_fresh;
      create index outbox_delivery_fresh on outbox_delivery (subscription_id, lane, id)
        where status = 'PENDING' and not held;
      ${LIKE_A_LANE}`)
    const { text, values } = await claimHalfWay(h)
    const plan = await explain(await h.connect('explain'), {
      text: text.replaceAll('(d.id + 0)', 'd.id'),
      values,
    })
    expect(plan['Actual Rows']).toBe(RETURNED)
    expect(mostRowsScanned(plan)).toBeGreaterThanOrEqual(HALF)
  })
})
