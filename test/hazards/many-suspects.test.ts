import { describe, expect, test } from 'vitest'
import { join } from '../store/contract/helpers.ts'
import { explain, mostRowsScanned } from './plan.ts'
import { hazard, publishMany } from './support.ts'

const SUSPECTS = 10_000

/** How many rows the look reads that every worker takes each second, after an outage made everything suspect. */
async function rowsRead(rewrite: (text: string) => string): Promise<number> {
  await using h = await hazard()
  const { store, pool } = h.worker('w')
  const sub = await join(store)
  await publishMany(h, SUSPECTS, 'n')
  await h.db.pool.query(
    'update outbox_delivery set fresh = false, held = true, suspect = true, next_retry_at = now()',
  )
  await h.db.pool.query('vacuum analyze outbox_delivery')
  await store.recover([sub.id], 'w')
  const { text, values } = pool.lastSent(/claimable/)
  return mostRowsScanned(await explain(await h.connect('explain'), { text: rewrite(text), values }))
}

describe('ten thousand suspects', () => {
  test('are not counted to know that there are some', async () => {
    expect(await rowsRead((text) => text)).toBeLessThanOrEqual(100)
  })

  test('are all read if they are counted', async () => {
    expect(await rowsRead((text) => text.replace('limit 100', ''))).toBe(SUSPECTS)
  })
})
