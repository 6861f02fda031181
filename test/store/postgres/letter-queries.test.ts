import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDeadLetters, type DeadLetters } from '../../../src/dead-letter/dead-letters.ts'
import type { DeadLetterFilter } from '../../../src/index.ts'
import { DEAD_LETTER_REASONS } from '../../../src/index.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { createOutboxDatabase, type OutboxDatabase, one } from './fixtures.ts'
import { insertLetter } from './letter-fixtures.ts'

let db: OutboxDatabase
let letters: DeadLetters
const ids: Record<string, string> = {}

const SEEDS = {
  plain: {},
  stream: { stream: 'shop.payment' },
  type: { eventType: 'OrderPaid' },
  subscription: { subscription: 'other' },
  code: { code: 'NO_HANDLER' },
  aggregate: { aggregateType: 'invoice', aggregateId: '한글 7' },
  percent: { message: '100% of _all_ were REFUSED by \\server' },
  late: { failedAt: '2026-02-01T00:00:00Z' },
  resolved: { resolvedDaysAgo: 1 },
} as const

beforeAll(async () => {
  db = await createOutboxDatabase()
  letters = createDeadLetters(postgresStore({ pool: db.pool, schema: db.schema }))
  for (const [name, letter] of Object.entries(SEEDS)) ids[name] = await insertLetter(db.pool, letter)
})
afterAll(async () => {
  await db.drop()
})

const CASES: readonly (readonly [DeadLetterFilter, readonly (keyof typeof SEEDS)[]])[] = [
  [{ stream: 'shop.payment' }, ['stream']],
  [{ eventType: 'OrderPaid' }, ['type']],
  [{ subscription: 'other' }, ['subscription']],
  [{ errorCode: 'NO_HANDLER' }, ['code']],
  [{ reason: 'NO_HANDLER' }, ['code']],
  [{ reason: 'CRASHED' }, []],
  [{ aggregateType: 'invoice' }, ['aggregate']],
  [{ aggregateId: '한글 7' }, ['aggregate']],
  [{ aggregateType: 'order', aggregateId: '한글 7' }, []],
  [{ failedFrom: new Date('2026-02-01T00:00:00Z') }, ['late']],
  [{ failedFrom: new Date('2026-02-01T00:00:00.001Z') }, []],
  [{ failedTo: new Date('2026-02-01T00:00:00Z'), stream: 'shop.payment' }, ['stream']],
  [
    {
      failedFrom: new Date('2026-01-02T03:04:05Z'),
      failedTo: new Date('2026-01-02T03:04:05.001Z'),
      text: '%',
    },
    ['percent'],
  ],
  [{ resolved: true }, ['resolved']],
  [{ resolved: null, text: 'it failed', stream: 'shop.payment' }, ['stream']],
  [{ stream: 'none' }, []],
]

describe('D3 a list narrows by every filter, and counts the same', () => {
  test.each(CASES)('%j', async (filter, expected) => {
    expect((await letters.list(filter)).map(({ id }) => id)).toEqual(expected.map((name) => ids[name]))
    expect(await letters.count(filter)).toBe(expected.length)
  })

  test('D3 without a filter it has the open ones, newest first', async () => {
    const open = Object.keys(SEEDS).filter((name) => name !== 'resolved')
    expect((await letters.list()).map(({ id }) => id)).toEqual(open.toReversed().map((name) => ids[name]))
  })

  test.each([
    ['100%', 1],
    ['of _all_', 1],
    ['refused by \\SERVER', 1],
    ['100_', 0],
    ['%', 1],
    ['_', 1],
    ['\\', 1],
    ["' or true --", 0],
  ])('D3 text in the error is taken as it is: %j', async (text, found) => {
    expect(await letters.count({ text })).toBe(found)
  })

  test('D3 of a group, by its fingerprint', async () => {
    const [letter] = await letters.list({ text: '100%' })
    expect(await letters.count({ fingerprint: letter?.fingerprint ?? '' })).toBe(1)
  })
})

describe('what is wrong with a query is said before the database is asked', () => {
  test.each([
    [{ stream: 'a\0b' }, 'stream must not contain a NUL character'],
    [{ text: 'a\0b' }, 'text must not contain a NUL character'],
    [{ text: '' }, 'text must be text that is not empty'],
    [{ aggregateId: '\ud800' }, 'aggregateId contains half of a surrogate pair'],
    [{ aggregateId: 7 }, 'aggregateId must be text'],
    [{ reason: 'BAD_LUCK' }, "reason must be one of 'NO_HANDLER'"],
    [{ failedFrom: '2026-01-01' }, 'failedFrom must be a valid Date'],
    [{ failedTo: new Date(Number.NaN) }, 'failedTo must be a valid Date'],
    [{ failedFrom: new Date(2), failedTo: new Date(2) }, 'failedFrom must be before failedTo'],
    [{ limit: -1 }, 'limit must be a whole number from 1 to 1000, but is -1'],
    [{ before: '-1' }, 'the id must be a whole number as text'],
    [{ txet: 'x' }, 'did you mean "text"?'],
  ])('%j', async (query, says) => {
    await expect(letters.list(query as object)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining(says),
    })
  })
})

test('the list of reasons is the one that the database holds', async () => {
  const check = await one<string>(
    db.pool,
    `select pg_get_constraintdef(c.oid) from pg_constraint c
      where c.conname = 'outbox_dead_letter_reason' and c.connamespace = $1::regnamespace`,
    [db.schema],
  )
  const words = [...check.matchAll(/'([A-Z_]+)'/g)].map(([, word]) => word)
  expect(new Set(words)).toEqual(new Set(Object.keys(DEAD_LETTER_REASONS)))
})
