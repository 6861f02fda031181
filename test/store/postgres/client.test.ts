import { expect, test } from 'vitest'
import {
  keptQuery,
  letKeep,
  type PgClient,
  type PgResult,
  rawQuery,
} from '../../../src/store/postgres/client.ts'

function answering(): { readonly client: PgClient; readonly results: PgResult<unknown>[] } {
  const results: PgResult<unknown>[] = []
  const query = async () => {
    const result = { rows: [['1', 'text']], rowCount: 1 }
    results.push(result)
    return result
  }
  return { client: { query } as unknown as PgClient, results }
}

test('rows are taken out of the result of the driver, which may live longer than they should', async () => {
  const { client, results } = answering()
  expect(await rawQuery(client, 'select 1', [])).toEqual([['1', 'text']])
  letKeep(client)
  expect(await keptQuery(client, 'one', 'select 1', [])).toEqual([['1', 'text']])
  expect(results).toEqual([
    { rows: [], rowCount: 1 },
    { rows: [], rowCount: 1 },
  ])
})
