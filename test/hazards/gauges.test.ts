import { describe, expect, test } from 'vitest'
import { readGauges } from '../../src/store/postgres/read-gauges.ts'
import { subscriptionStatuses } from '../../src/store/postgres/subscription-statuses.ts'
import { claim, DONE, join, settled } from '../store/contract/helpers.ts'
import { explain, mostRowsScanned, type PlanNode, seqScans } from './plan.ts'
import type { SteppingPool } from './stepping-pool.ts'
import { createOwnDatabase, type Hazard, hazard, publishMany } from './support.ts'

const BACKLOG = 20_000
const OPEN = 500
const LIMIT = 100
/** The others have a row for each subscription, lane or worker. */
const GROWING = ['outbox_event', 'outbox_delivery', 'outbox_dead_letter']
/** Fresh, held, suspect and leased ones, and the heads of lanes: each has its event looked up. */
const KINDS = 5

/**
 * Tables of which nearly all is done, with statistics from when all of it was pending: to the planner every way through
 * them looks as good as any other.
 */
async function nearlyDone(h: Hazard): Promise<SteppingPool> {
  const { store, pool } = h.worker('w')
  const sub = await join(store)
  await publishMany(h, BACKLOG, 'n')
  await h.db.pool.query('vacuum analyze outbox_delivery, outbox_event')
  const done = await claim(store, sub, 'w', BACKLOG - OPEN)
  await store.settle(done.map((delivery) => settled(delivery, DONE)))
  return pool
}

/** The plans of everything that reads, by the settings it was sent with. */
async function plansOf(h: Hazard, pool: SteppingPool, work: () => Promise<unknown>): Promise<PlanNode[]> {
  const before = pool.sent.length
  await work()
  const sent = pool.sent.slice(before)
  const client = await h.connect('explain')
  // For the session: what is explained is rolled back, and so would be what was set in the same transaction.
  for (const [setting] of sent
    .map(({ text }) => text)
    .join(';')
    .matchAll(/(?<=set local )[^;]+/g)) {
    await client.query(`set ${setting}`)
  }
  const plans: PlanNode[] = []
  for (const statement of sent.filter(({ text }) => /^\s*select\b/.test(text) && text.includes('outbox_'))) {
    plans.push(await explain(client, statement))
  }
  return plans
}

describe('gauges of tables that hold much', () => {
  test('U9 E14 read as many rows as they count, and no table from one end to the other', async () => {
    await using h = await hazard(createOwnDatabase)
    const pool = await nearlyDone(h)
    const limits = { countLimit: LIMIT, timeoutMs: 20_000 }
    const plans = await plansOf(h, pool, () => readGauges(pool, h.db.quoted, limits))
    expect(plans.length).toBeGreaterThanOrEqual(5)
    for (const plan of plans) {
      expect(seqScans(plan).filter((table) => GROWING.includes(table))).toEqual([])
      expect(mostRowsScanned(plan)).toBeLessThanOrEqual(LIMIT * KINDS)
    }
  })

  test('read everything where they count exactly', async () => {
    await using h = await hazard(createOwnDatabase)
    const pool = await nearlyDone(h)
    const plans = await plansOf(h, pool, () => subscriptionStatuses(pool, h.db.quoted))
    expect(Math.max(...plans.map(mostRowsScanned))).toBeGreaterThanOrEqual(BACKLOG)
  })
})
