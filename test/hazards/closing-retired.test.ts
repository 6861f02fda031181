import { describe, expect, test } from 'vitest'
import { workerPool } from '../../src/store/postgres/sibling-pool.ts'
import { subscribe } from '../store/postgres/fixtures.ts'
import { explain, pages } from './plan.ts'
import { createOwnDatabase, hazard, publishMany } from './support.ts'

const DELIVERED = 20_000

const asItIs = (schema: string, id: number): string => `select ${schema}.outbox_open_deliveries(${id})`
const byStatus = (schema: string, id: number): string =>
  `select count(*) from ${schema}.outbox_delivery d
    where d.subscription_id = ${id} and d.status in ('PENDING', 'PROCESSING')`

/** How many pages a worker reads to know that nothing is open of a subscription to which much was delivered. */
async function pagesRead(count: (schema: string, id: number) => string): Promise<number> {
  await using h = await hazard(createOwnDatabase)
  const id = await subscribe(h.db, { name: 'retiring' })
  await subscribe(h.db, { name: 'other' })
  await publishMany(h, DELIVERED, 'n')
  await h.db.pool.query(`
    set session_replication_role = replica;
    update outbox_delivery set status = 'DONE', fresh = false, processed_at = now();
    reset session_replication_role`)
  await h.db.pool.query('vacuum analyze outbox_delivery')
  const sibling = workerPool(h.db.pool, () => undefined)
  const client = await sibling.pool.connect()
  const statement = { text: count(h.db.quoted, id), values: [] }
  // The first time in a session it reads the catalogue too.
  await explain(client as never, statement)
  const read = pages(await explain(client as never, statement))
  client.release(true)
  await sibling.pool.end()
  return read
}

describe('a worker that closes a retired subscription', () => {
  test('does not read what was ever delivered', async () => {
    expect(await pagesRead(asItIs)).toBeLessThan(50)
  })

  test('reads all of it if it asks for the status', async () => {
    expect(await pagesRead(byStatus)).toBeGreaterThan(500)
  })
})
