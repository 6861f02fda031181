import { expect, test } from 'vitest'
import { postgresStore } from '../../../src/store/postgres/index.ts'
import { sturdyPool } from '../../support/sturdy-pool.ts'
import { claim, dead, join, settled } from '../contract/helpers.ts'
import { createOutboxDatabase, one } from './fixtures.ts'

test.each([
  ['2026-11-16 01:02:03.123Z', '2026-11-16T01:02:03.123Z'],
  ['2026-11-16 01:02:03.1234Z', '2026-11-16T01:02:03.123Z'],
  ['2026-11-16 01:02:03.1235Z', '2026-11-16T01:02:03.124Z'],
  ['1969-12-31 23:59:59.9991Z', '1969-12-31T23:59:59.999Z'],
])('an event of %s is of the same time for its handler and as a dead letter', async (stored, seen) => {
  await using db = await createOutboxDatabase()
  // As a role may have it set: times must not travel as binary fractions.
  const pool = sturdyPool({ connectionString: db.url, options: '-c extra_float_digits=-15' })
  const store = postgresStore({ pool, schema: db.schema })
  const worker = store.openWorker()
  try {
    const sub = await join(worker)
    await db.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload, occurred_at)
       values ('things', 'Happened', 'thing', '1', '{}', $1)`,
      [stored],
    )
    const claimed = await claim(worker, sub, 'w')
    await worker.settle(claimed.map((delivery) => settled(delivery, dead)))
    const letter = await store.findDeadLetter(await one<string>(db.pool, 'select id from outbox_dead_letter'))
    expect(claimed.map(({ event }) => event.occurredAt.toISOString())).toEqual([seen])
    expect(letter?.occurredAt.toISOString()).toBe(seen)
  } finally {
    await worker.close()
    await pool.end()
  }
})
