import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { createTestDatabase } from './database.ts'

async function schemaExists(name: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: inject('databaseUrl') })
  await client.connect()
  const { rows } = await client.query('select 1 from pg_namespace where nspname = $1', [name])
  await client.end()
  return rows.length === 1
}

test('each test database is a schema of its own, for its pool and its url', async () => {
  await using one = await createTestDatabase()
  await using other = await createTestDatabase()
  await one.pool.query('create table t as select 1 as n')

  const client = new pg.Client({ connectionString: one.url })
  await client.connect()
  expect((await client.query('select n, current_schema() as schema from t')).rows).toEqual([
    { n: 1, schema: one.schema },
  ])
  await client.end()
  await expect(other.pool.query('select * from t')).rejects.toThrow('relation "t" does not exist')
})

test('drop removes the schema, even from under a connection that was forgotten in a transaction', async () => {
  const database = await createTestDatabase()
  await database.pool.query('create table t ()')
  const forgotten = new pg.Client({ connectionString: database.url })
  const cut = new Promise((resolve) => forgotten.on('error', resolve))
  await forgotten.connect()
  await forgotten.query('begin; lock table t')

  await database.drop()

  expect(await schemaExists(database.schema)).toBe(false)
  expect(await cut).toMatchObject({ code: '57P01' })
})
