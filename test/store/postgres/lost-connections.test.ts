import pg from 'pg'
import { expect, test } from 'vitest'
import { postgresStore } from '../../../src/store/postgres/index.ts'
import { createTestDatabase } from '../../support/database.ts'
import { eventually } from '../../support/program.ts'

test('an idle connection that the server ends does not end the process, with any number of stores on its pool', async () => {
  await using db = await createTestDatabase()
  const pool = new pg.Pool({ connectionString: db.url })
  postgresStore({ pool })
  postgresStore({ pool, schema: db.schema })
  expect(pool.listenerCount('error')).toBe(1)

  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid')
  await db.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
  await eventually('the pool drops the connection', () => pool.totalCount === 0)

  expect((await pool.query('select 1')).rowCount).toBe(1)
  await pool.end()
})
