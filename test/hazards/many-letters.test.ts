import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDeadLetters } from '../../src/dead-letter/dead-letters.ts'
import type { DeadLetterFilter } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/postgres-store.ts'
import { createOutboxDatabase, type OutboxDatabase } from '../store/postgres/fixtures.ts'
import { insertManyLetters } from '../store/postgres/letter-fixtures.ts'
import { explain, mostRowsScanned, pages, seqScans } from './plan.ts'
import { SteppingPool } from './stepping-pool.ts'

const LETTERS = 20_000
let db: OutboxDatabase
let pool: SteppingPool

beforeAll(async () => {
  db = await createOutboxDatabase()
  await insertManyLetters(db.pool, LETTERS)
  pool = new SteppingPool(db.pool)
})
afterAll(async () => {
  await db.drop()
})

/** What the library sent for this call, as it is run by the server. */
async function planOf(
  call: (letters: ReturnType<typeof createDeadLetters>) => Promise<unknown>,
): Promise<Awaited<ReturnType<typeof explain>>> {
  await call(createDeadLetters(postgresStore({ pool, schema: db.schema })))
  const client = await db.pool.connect()
  try {
    return await explain(client, pool.lastSent(/outbox_dead_letter/))
  } finally {
    client.release()
  }
}

const RARE: readonly DeadLetterFilter[] = [
  {},
  { subscription: 'sub3' },
  { stream: 'stream3' },
  { eventType: 'Type3' },
  { errorCode: 'E3' },
  { reason: 'NON_RETRYABLE' },
  { reason: 'CRASHED' },
  { aggregateType: 'order', aggregateId: '77' },
  { subscription: 'nobody' },
  { errorCode: 'NEVER' },
  { fingerprint: 'none' },
  { stream: 'none' },
  { failedFrom: new Date('2027-01-01') },
  { failedTo: new Date('2026-01-01T00:00:30Z') },
]

test.each(RARE)('a page of 20,000 by %j looks at few of them', async (filter) => {
  const plan = await planOf((letters) => letters.list(filter))
  expect(seqScans(plan)).not.toContain('outbox_dead_letter')
  expect(mostRowsScanned(plan)).toBeLessThan(1_000)
})

test('grouping 20,000 open ones does not read their payloads', async () => {
  const table = await db.pool.query<{ pages: number }>(
    `select pg_relation_size('outbox_dead_letter') / 8192 as pages`,
  )
  const plan = await planOf((letters) => letters.group())
  expect(seqScans(plan)).not.toContain('outbox_dead_letter')
  expect(pages(plan)).toBeLessThan(Number(table.rows[0]?.pages) / 4)
})
