import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDeadLetters, type DeadLetters } from '../../../src/dead-letter/dead-letters.ts'
import { errorPattern } from '../../../src/dead-letter/error-pattern.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { createOutboxDatabase, type OutboxDatabase, one } from './fixtures.ts'
import { insertLetter } from './letter-fixtures.ts'

let db: OutboxDatabase
let letters: DeadLetters

beforeEach(async () => {
  db = await createOutboxDatabase()
  letters = createDeadLetters(postgresStore({ pool: db.pool, schema: db.schema }))
})
afterEach(async () => {
  await db.drop()
})

const patternOf = (message: string): Promise<string> =>
  one(db.pool, 'select outbox_error_pattern($1)', [message])

describe('a pattern leaves out what differs from event to event', () => {
  test.each([
    ['order 17 failed after 3.5 s', 'order <n> failed after <n> s'],
    ['connect ECONNREFUSED 10.0.3.7:5432', 'connect ECONNREFUSED <n>'],
    ['event 01a1e1c7-5e93-776f-936a-babd9723946b is gone', 'event <uuid> is gone'],
    ['event 01A1E1C7-5E93-776F-936A-BABD9723946B is gone', 'event <uuid> is gone'],
    ['checksum 9f86d081884c7d65 at 0xDEADBEEF', 'checksum <hex> at <hex>'],
    ['no user "kim@example.com" or \'lee\' or `choi`', 'no user <value> or <value> or <value>'],
    ["it can't be 'done', don't ask", "it can't be <value>, don't ask"],
    ['All 5 attempts failed, the last with: timeout after 30 s', 'timeout after <n> s'],
    ['The only attempt failed with: timeout after 9 s', 'timeout after <n> s'],
    ['결제 서버 오류 502\n  at  line 7', '결제 서버 오류 <n> at line <n>'],
    ["  'kim' paid 12,500.00 at 09:30\u{1f600} 9f86d081884c7d65 ", '<value> paid <n> at <n>\u{1f600} <hex>'],
    ['facade and decade stay words', 'facade and decade stay words'],
    ['', ''],
  ])('%j', async (message, pattern) => {
    expect(await patternOf(message)).toBe(pattern)
    expect(errorPattern(message)).toBe(pattern)
  })

  test('and is never longer than 500 characters', async () => {
    expect(await patternOf('x y '.repeat(500))).toHaveLength(500)
    const long = '\u{1f600} y '.repeat(500)
    expect(errorPattern(long)).toBe(await patternOf(long))
  })
})

describe('grouping', () => {
  test('D3 D8 counts open dead letters by what their errors have in common, the largest group first', async () => {
    const at = (minute: number): string => `2026-01-01T00:0${minute}:00Z`
    await insertLetter(db.pool, { message: 'no mailbox "kim"', failedAt: at(1) })
    await insertLetter(db.pool, { message: 'no mailbox "lee"', failedAt: at(3), subscription: 'other' })
    const newest = await insertLetter(db.pool, {
      message: 'All 3 attempts failed, the last with: no mailbox "choi"',
      failedAt: at(2),
      eventType: 'OrderPaid',
    })
    await insertLetter(db.pool, { message: 'no mailbox "park"', resolvedDaysAgo: 1 })
    const coded = await insertLetter(db.pool, { message: 'no mailbox "kim"', code: 'OTHER', failedAt: at(5) })
    expect(await letters.group()).toEqual([
      {
        fingerprint: (await letters.show(newest)).fingerprint,
        errorCode: 'BOOM',
        pattern: 'no mailbox <value>',
        count: 3,
        firstFailedAt: new Date(at(1)),
        lastFailedAt: new Date(at(3)),
        subscriptions: ['other', 'sub'],
        eventTypes: ['OrderPaid', 'OrderPlaced'],
        sampleId: newest,
      },
      expect.objectContaining({ errorCode: 'OTHER', count: 1, sampleId: coded }),
    ])
    const [largest] = await letters.group({ limit: 1 })
    const members = await letters.list({ fingerprint: largest?.fingerprint ?? '' })
    expect(members).toHaveLength(3)
  })

  test('D3 takes the filters of a list', async () => {
    await insertLetter(db.pool, { message: 'a 1' })
    await insertLetter(db.pool, { message: 'b 1', subscription: 'other' })
    await insertLetter(db.pool, { message: 'c 1', resolvedDaysAgo: 1 })
    const patterns = async (query: object): Promise<string[]> =>
      (await letters.group(query)).map(({ pattern }) => pattern)
    expect(await patterns({ subscription: 'other' })).toEqual(['b <n>'])
    expect(await patterns({ resolved: true })).toEqual(['c <n>'])
    expect(await patterns({ resolved: null })).toHaveLength(3)
    expect(await patterns({ text: 'nothing like it' })).toEqual([])
  })

  test('names of subscriptions and types are cut after 20', async () => {
    for (let n = 0; n < 25; n += 1) await insertLetter(db.pool, { eventType: `Type${n}` })
    const [group] = await letters.group()
    expect(group).toMatchObject({ count: 25 })
    expect(group?.eventTypes).toHaveLength(20)
  })

  test.each([0, -1, 1_001, 1.5])('refuses a limit of %d', async (limit) => {
    await expect(letters.group({ limit })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
  })
})
