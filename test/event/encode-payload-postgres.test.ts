import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tryEncodePayload } from '../../src/event/encode-payload.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('what is taken for storable is stored by PostgreSQL and read back as the same value', async () => {
  const anything = fc.oneof(
    fc.jsonValue({ maxDepth: 5, stringUnit: 'binary' }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.dictionary(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })),
  )
  await fc.assert(
    fc.asyncProperty(anything, async (value) => {
      const encoded = tryEncodePayload(value, 1_048_576)
      if (!encoded.ok) return
      const { rows } = await database.pool.query<{ text: string }>('select ($1::text::jsonb)::text as text', [
        encoded.json,
      ])
      expect(JSON.parse(rows[0]?.text ?? '')).toEqual(JSON.parse(encoded.json))
    }),
    { numRuns: 500 },
  )
})

test('200 levels and the largest numbers are stored', async () => {
  let deep: unknown = [Number.MAX_SAFE_INTEGER, 5e-324, 1.7976931348623157e-300, -0.1]
  for (let level = 1; level < 200; level += 1) deep = { in: deep }
  const encoded = tryEncodePayload(deep, 1_048_576)
  const json = encoded.ok ? encoded.json : ''
  const { rows } = await database.pool.query<{ value: unknown }>('select $1::text::jsonb as value', [json])
  expect(rows[0]?.value).toEqual(deep)
})
