import { describe, expect, test } from 'vitest'
import { siblingPool } from '../../src/store/postgres/sibling-pool.ts'
import { subscribe } from '../store/postgres/fixtures.ts'
import { explain, pages } from './plan.ts'
import { createOwnDatabase, hazard, publishMany } from './support.ts'

const DELIVERED = 20_000

/** How many pages a worker reads to know that nothing is open of a subscription to which much was delivered. */
async function pagesRead(setting = 'select'): Promise<number> {
  await using h = await hazard(createOwnDatabase)
  const id = await subscribe(h.db, { name: 'retiring' })
  await subscribe(h.db, { name: 'other' })
  await publishMany(h, DELIVERED, 'n')
  await h.db.pool.query(`
    set session_replication_role = replica;
    update outbox_delivery set status = 'DONE', processed_at = now();
    reset session_replication_role`)
  await h.db.pool.query('vacuum analyze outbox_delivery')
  const sibling = siblingPool(h.db.pool, () => undefined)
  const client = await sibling.pool.connect()
  await client.query(setting)
  const statement = { text: `select ${h.db.quoted}.outbox_open_deliveries(${id})`, values: [] }
  // The first time in a session it reads the catalogue too.
  await explain(client as never, statement)
  const read = pages(await explain(client as never, statement))
  client.release(true)
  await sibling.pool.end()
  return read
}

describe('a worker that closes a retired subscription', () => {
  test('does not read what was ever delivered', async () => {
    expect(await pagesRead()).toBeLessThan(50)
  })

  test('reads all of it where bitmap scans are off', async () => {
    expect(await pagesRead('set enable_bitmapscan = off')).toBeGreaterThan(500)
  })
})
