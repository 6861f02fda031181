import { expect, test } from 'vitest'
import { createTestDatabaseWithTables } from '../support/database.ts'
import { snapshotOf } from './snapshot.ts'

test('a snapshot has every table that the migrations make', async () => {
  await using database = await createTestDatabaseWithTables()
  const { rows } = await database.pool.query('select tablename from pg_tables where schemaname = $1', [
    database.schema,
  ])
  const names = Object.keys(await snapshotOf(database.pool))
  expect(names).toEqual(
    expect.arrayContaining(rows.map(({ tablename }) => `${database.schema}.${tablename}`)),
  )
  expect(names).toContain(`${database.schema}.outbox_redrive_plan`)
})

test('a snapshot shows a table, a row and a schema that were not there', async () => {
  await using database = await createTestDatabaseWithTables()
  const { pool, schema } = database
  const before = await snapshotOf(pool)
  expect(await snapshotOf(pool)).toEqual(before)
  await pool.query('create table later (n int)')
  const empty = await snapshotOf(pool)
  expect(empty).toEqual({ ...before, [`${schema}.later`]: expect.any(String) })
  await pool.query('insert into later values (1)')
  const filled = await snapshotOf(pool)
  expect(filled).not.toEqual(empty)
  await pool.query('update later set n = 2')
  expect(await snapshotOf(pool)).not.toEqual(filled)
  await pool.query(`drop table later; create schema ${schema}_more`)
  expect(await snapshotOf(pool)).toEqual({ ...before, [`${schema}_more.`]: '' })
})
