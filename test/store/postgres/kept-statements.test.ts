import pg from 'pg'
import { expect, test } from 'vitest'
import { keptQuery, letKeep } from '../../../src/store/postgres/client.ts'
import { column, createOutboxDatabase } from './fixtures.ts'

const reasons = [
  { why: 'its session has forgotten it', spoil: 'discard all' },
  { why: 'it returns another type now', spoil: 'alter table thing alter n type text' },
]

test.each(reasons)('a statement that was kept is sent in full again when $why', async ({ spoil }) => {
  await using db = await createOutboxDatabase()
  await db.pool.query('create table thing (n integer); insert into thing values (1)')
  const client = new pg.Client({ connectionString: db.url })
  await client.connect()
  letKeep(client)
  const ask = (): Promise<unknown> => keptQuery(client, 'ask', `select n from ${db.quoted}.thing`, [])
  const kept = (): Promise<readonly unknown[]> => column(client, 'select name from pg_prepared_statements')
  expect(await ask()).toEqual([['1']])
  expect(await kept()).toEqual(['commitpost_ask'])

  await client.query(`set search_path = ${db.quoted}`)
  await client.query(spoil)

  expect(await ask()).toEqual([['1']])
  expect(await ask()).toEqual([['1']])
  await client.query('deallocate all')
  await ask()
  expect(await kept(), 'and it is not kept again').toEqual([])
  await client.end()
})

test('any other error of a statement that is kept is its own', async () => {
  await using db = await createOutboxDatabase()
  const client = new pg.Client({ connectionString: db.url })
  await client.connect()
  letKeep(client)
  await expect(keptQuery(client, 'divide', 'select 1 / $1::int', [0])).rejects.toMatchObject({
    code: '22012',
  })
  expect(await keptQuery(client, 'divide', 'select 1 / $1::int', [1])).toEqual([['1']])
  expect(await column(client, 'select name from pg_prepared_statements')).toEqual(['commitpost_divide'])
  await client.end()
})
