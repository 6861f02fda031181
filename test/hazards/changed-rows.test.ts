import { describe, expect, test } from 'vitest'
import { claimLanes, join, takeLanes } from '../store/contract/helpers.ts'
import { asIfHeld, hazard, publish } from './support.ts'

const asItIs = (text: string): string => text
const unseen = (text: string): string => text.replaceAll('(select is_seen from whole)', 'true')

/** The positions of two claims; a person changes the first row between the first claim's snapshot and its lock. */
async function claimTwice(rewrite: (text: string) => string): Promise<readonly string[]> {
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
  await h.db.pool.query('update outbox_delivery set max_attempts = 20 where id = 1')
  await person.query('commit')
  const claimed = [...(await claiming), ...(await claimLanes(store, sub, 'w', lanes))]
  return claimed.map(({ position }) => position)
}

describe('a delivery that is changed after a claim began and before the claim comes to it', () => {
  test.each([
    ['short', asItIs],
    ['long', asIfHeld],
  ])('is not passed by later ones of its key, the %s way', async (_way, rewrite) => {
    expect(await claimTwice(rewrite)).toEqual(['1', '2', '3'])
  })

  test('is passed if what is locked is taken for what was seen', async () => {
    expect(await claimTwice(unseen)).toEqual(['2', '3', '1'])
  })
})
