import fc from 'fast-check'
import { expect, test } from 'vitest'
import { arrayLiteral } from '../../../src/store/postgres/array-literal.ts'
import { createTestDatabase } from '../../support/database.ts'

const storable = fc
  .string({ unit: 'grapheme', maxLength: 20 })
  .filter((text) => text.isWellFormed() && !text.includes('\0'))
const awkward = fc.constantFrom(
  '',
  '"',
  '\\',
  '\\"',
  '\\n',
  '\n',
  '\t\u001f',
  '{}',
  ',',
  'NULL',
  '😀',
  '\u2028',
  '{"a":"\\"b\\\\"}',
)

test('the database reads every text of an array as it was', async () => {
  await using database = await createTestDatabase()

  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(awkward, storable), { maxLength: 8 }), async (texts) => {
      const { rows } = await database.pool.query<{ read: readonly string[] }>(
        'select $1::text::text[] as read',
        [arrayLiteral(texts, (text) => text)],
      )

      expect(rows[0]?.read).toEqual(texts)
    }),
    { numRuns: 300 },
  )
})
