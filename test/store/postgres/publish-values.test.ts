import { expect, test } from 'vitest'
import { insertEvents } from '../../../src/store/postgres/insert-events.ts'
import { createOutboxDatabase, inTransaction, newEvent } from './fixtures.ts'

test.each([{ count: 1 }, { count: 2 }])(
  'every client can send the values of $count events: the server is asked to take them all as text',
  async ({ count }) => {
    const db = await createOutboxDatabase()
    const events = Array.from({ length: count }, () => newEvent())
    const types = await inTransaction(db, async (tx) => {
      await insertEvents(
        { query: (text, values = []) => tx.query({ name: 'seen', text, values: [...values] }) },
        db.quoted,
        events,
        { onDuplicate: 'error' },
      )
      const { rows } = await tx.query(
        "select distinct unnest(parameter_types)::text as type from pg_prepared_statements where name = 'seen'",
      )
      return rows
    })
    expect(types).toEqual([{ type: 'text' }])
    await db.drop()
  },
)
