import pg from 'pg'
import { expect, test } from 'vitest'
import { migrateUp } from '../../../src/store/postgres/migrate.ts'
import { createTestDatabase } from '../../support/database.ts'
import { refusal } from './fixtures.ts'

// The server of the tests is told not to read the bodies of functions, to save time: here it is told to.
test('the server finds nothing wrong with the body of any function when the tables are made', async () => {
  await using db = await createTestDatabase()
  const url = new URL(db.url)
  url.searchParams.set('options', `-c check_function_bodies=on -c search_path=${db.schema}`)
  const pool = new pg.Pool({ connectionString: url.href, max: 1 })
  try {
    const wrong = 'create function wrong() returns integer language plpgsql as $$ begin retrun 1; end $$'
    expect(await refusal(pool.query(wrong))).toBe('42601')
    const { applied } = await migrateUp(pool, { schema: db.schema })
    expect(applied.length).toBeGreaterThan(0)
  } finally {
    await pool.end()
  }
})
