import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDeadLetters, type DeadLetters } from '../../../src/dead-letter/dead-letters.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { column, createOutboxDatabase, type OutboxDatabase, refusal } from './fixtures.ts'
import { insertLetter } from './letter-fixtures.ts'

const KIM = { operator: 'kim', note: 'yearly' }
let db: OutboxDatabase
let letters: DeadLetters

beforeEach(async () => {
  db = await createOutboxDatabase()
  letters = createDeadLetters(postgresStore({ pool: db.pool, schema: db.schema }))
})
afterEach(async () => {
  await db.drop()
})

const left = (): Promise<string[]> => column(db.pool, 'select id::text from outbox_dead_letter order by id')
const log = async (): Promise<unknown[]> =>
  (
    await db.pool.query(
      'select operator, action, target, affected, note from outbox_operator_log order by id',
    )
  ).rows

describe('purging', () => {
  test('D3 removes what was resolved longer ago than that, and nothing that waits for a person', async () => {
    const open = await insertLetter(db.pool, { failedAt: '2000-01-01' })
    const old = await insertLetter(db.pool, { resolvedDaysAgo: 31 })
    const young = await insertLetter(db.pool, { resolvedDaysAgo: 29 })
    expect(await letters.purge({ olderThan: '30d' }, KIM)).toEqual({ purged: 1 })
    expect(await left()).toEqual([open, young])
    expect(await log()).toEqual([
      {
        operator: 'kim',
        action: 'purge',
        target: { olderThanSeconds: 2_592_000, firstId: Number(old), lastId: Number(old) },
        affected: 1,
        note: 'yearly',
      },
    ])
    expect(await letters.purge({ olderThan: 0 }, KIM)).toEqual({ purged: 1 })
    expect(await left()).toEqual([open])
  })

  test('D3 of one subscription', async () => {
    const other = await insertLetter(db.pool, { resolvedDaysAgo: 31, subscription: 'other' })
    await insertLetter(db.pool, { resolvedDaysAgo: 31 })
    expect(await letters.purge({ olderThan: '30d', subscription: 'sub' }, KIM)).toEqual({ purged: 1 })
    expect(await left()).toEqual([other])
  })

  test('D3 goes in batches, each with its record, and returns how many it was in all', async () => {
    await insertLetter(db.pool, { resolvedDaysAgo: 31 })
    await db.pool.query(
      `insert into outbox_dead_letter (subscription, position, event_id, stream, event_type, schema_version,
              aggregate_type, aggregate_id, payload, headers, occurred_at, error_code, error_message, retry_count,
              resolved, resolved_at, resolved_by)
       select subscription, position, gen_random_uuid(), stream, event_type, schema_version, aggregate_type,
              aggregate_id, payload, headers, occurred_at, error_code, error_message, retry_count, resolved,
              resolved_at, resolved_by from outbox_dead_letter, generate_series(1, 2500)`,
    )
    expect(await letters.purge({ olderThan: '30d' }, KIM)).toEqual({ purged: 2_501 })
    expect(await column(db.pool, 'select affected from outbox_operator_log order by id')).toEqual([
      1_000, 1_000, 501,
    ])
  })

  test('leaves what somebody has locked, and is no act where there is nothing to remove', async () => {
    await insertLetter(db.pool, { resolvedDaysAgo: 31 })
    const client = await db.pool.connect()
    await client.query('begin; select 1 from outbox_dead_letter for update')
    expect(await letters.purge({ olderThan: '30d' }, KIM)).toEqual({ purged: 0 })
    await client.query('rollback')
    client.release()
    expect(await log()).toEqual([])
  })

  test.each([
    [{ olderThan: '-1d' }, KIM, 'olderThan must be milliseconds'],
    [{}, KIM, 'olderThan must be milliseconds'],
    [{ olderThan: '101y' }, KIM, 'olderThan must be milliseconds'],
    [{ olderThan: '40000d' }, KIM, 'olderThan must be at most 100 years'],
    [{ olderThan: '1d', subscription: 'a\0' }, KIM, 'subscription must not contain a NUL character'],
    [{ olderThan: '1d', all: true }, KIM, 'there is no option "all"'],
    [null, KIM, 'the options must be an object'],
    [{ olderThan: '1d' }, {}, 'operator must name who does this'],
    [
      { olderThan: '1d' },
      { operator: 'kim', note: 'x'.repeat(2 ** 20) },
      'note must be at most 2000 characters long, but is 1048576',
    ],
    [
      { olderThan: '1d' },
      { operator: 'k'.repeat(201) },
      'operator must be at most 200 characters long, but is 201',
    ],
  ])('refuses %j by %j', async (options, act, says) => {
    await insertLetter(db.pool, { resolvedDaysAgo: 40_000 })
    await expect(letters.purge(options as never, act as never)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining(says),
    })
    expect(await left()).toHaveLength(1)
    expect(await log()).toEqual([])
  })
})

test('the database itself keeps what nobody has decided on', async () => {
  await insertLetter(db.pool)
  await insertLetter(db.pool, { resolvedDaysAgo: 1 })
  expect(await refusal(db.pool.query('delete from outbox_dead_letter'))).toBe('55000')
  expect(await refusal(db.pool.query('truncate outbox_dead_letter'))).toBe('55000')
  expect(await refusal(db.pool.query(`select outbox_purge('1 day', ' ')`))).toBe('22023')
  expect(await refusal(db.pool.query(`select outbox_purge('-1 day', 'kim')`))).toBe('22023')
  expect(await refusal(db.pool.query(`select outbox_purge('1 day', 'kim', most => 0)`))).toBe('22023')
  expect(await left()).toHaveLength(2)
})
