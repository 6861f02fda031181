import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { DeliveryStatus } from '../../../src/delivery/delivery.ts'
import { canMove } from '../../../src/delivery/state.ts'
import {
  column,
  createOutboxDatabase,
  insertEvent,
  inTransaction,
  makeDead,
  type OutboxDatabase,
  one,
  refusal,
  subscribe,
  withLetters,
} from './fixtures.ts'

const STATUSES: readonly DeliveryStatus[] = ['PENDING', 'PROCESSING', 'DONE', 'DEAD']

/** What a row must hold to be in a status at all. */
const FACTS: Readonly<Record<DeliveryStatus, string>> = {
  PENDING: `fresh = true, locked_by = null, locked_until = null, lease_token = null, processed_at = null`,
  PROCESSING: `fresh = false, locked_by = 'w', locked_until = now(), lease_token = 7, processed_at = null, held = false, next_retry_at = null`,
  DONE: `fresh = false, locked_by = null, locked_until = null, lease_token = null, processed_at = now()`,
  DEAD: `fresh = false, locked_by = null, locked_until = null, lease_token = null, processed_at = null, last_error_code = 'BOOM'`,
}

/** The shortest way from PENDING to each status. */
const WAY: Readonly<Record<DeliveryStatus, readonly DeliveryStatus[]>> = {
  PENDING: [],
  PROCESSING: ['PROCESSING'],
  DONE: ['PROCESSING', 'DONE'],
  DEAD: ['PROCESSING', 'DEAD'],
}

let db: OutboxDatabase
let eventId: string

beforeEach(async () => {
  db = await createOutboxDatabase()
  await subscribe(db, { orderBy: 'aggregate' })
  eventId = await insertEvent(db.pool)
})
afterEach(async () => {
  await db.drop()
})

/** A move to DEAD writes the dead letter too, as it has to. */
const move = (to: DeliveryStatus): Promise<unknown> =>
  to === 'DEAD' ? db.pool.query(withLetters(moveSql(to))) : db.pool.query(moveSql(to))
const moveSql = (to: DeliveryStatus): string => `update outbox_delivery set status = '${to}', ${FACTS[to]}`
const bring = async (to: DeliveryStatus): Promise<void> => {
  for (const status of WAY[to]) await move(status)
}
const status = (): Promise<string> => one(db.pool, 'select status from outbox_delivery')
const set = (assignments: string): Promise<unknown> =>
  db.pool.query(`update outbox_delivery set ${assignments}`)

describe('E6 transitions', () => {
  const pairs = STATUSES.flatMap((from) => STATUSES.map((to) => ({ from, to })))

  const isEnded = (name: DeliveryStatus): boolean => name === 'DONE' || name === 'DEAD'

  // DEAD -> PENDING and PENDING -> DEAD are possible, but only as an operator's act: see below, and retire.test.ts.
  const allowed = ({ from, to }: { from: DeliveryStatus; to: DeliveryStatus }): boolean =>
    (from === to && !isEnded(from)) ||
    (canMove(from, to) && from !== 'DEAD' && !(from === 'PENDING' && to === 'DEAD'))

  test.each(pairs.filter(allowed))(
    'E6 the database lets a delivery go from $from to $to',
    async ({ from, to }) => {
      await bring(from)
      await move(to)
      expect(await status()).toBe(to)
    },
  )

  test.each(pairs.filter((pair) => !allowed(pair)))(
    'E6 the database refuses $from to $to, whoever tries and whatever it sets',
    async ({ from, to }) => {
      await bring(from)
      const sql = moveSql(to)
      expect(await refusal(db.pool.query(sql))).toBe('55000')
      const forged = `set local commitpost.redriving = 'on'; set local commitpost.retaining = 'on'; ${sql}`
      expect(await refusal(db.pool.query(forged))).toBe('55000')
      expect(await status()).toBe(from)
    },
  )

  test('E12 nothing is DEAD without a dead letter of its own, not even after one that was resolved', async () => {
    await bring('PROCESSING')
    expect(await refusal(db.pool.query(moveSql('DEAD')))).toBe('55000')
    expect(await status()).toBe('PROCESSING')
    await move('DEAD')
    const letterId = await one<string>(db.pool, 'select id from outbox_dead_letter')
    await db.pool.query(`select outbox_retry($1, 'kim')`, [letterId])
    await move('PROCESSING')
    expect(await refusal(db.pool.query(moveSql('DEAD')))).toBe('55000')
  })

  test('E6 a status outside the machine does not exist', async () => {
    expect(await refusal(set(`status = 'FAILED'`))).toBe('23514')
    expect(await refusal(set('status = null'))).toBe('23502')
    const insert = `insert into outbox_delivery (subscription_id, lane, id, event_id, max_attempts, status)
      values (1, 0, 99, gen_random_uuid(), 1, 'FAILED')`
    expect(await refusal(db.pool.query(insert))).toBe('23514')
  })

  test('E6 one refused row of many undoes the statement', async () => {
    await insertEvent(db.pool)
    const first = await one(db.pool, 'select min(id) from outbox_delivery')
    await db.pool.query(
      `update outbox_delivery set status = 'PROCESSING', ${FACTS.PROCESSING} where id = $1`,
      [first],
    )
    expect(await refusal(move('DONE'))).toBe('55000')
    expect(await column(db.pool, 'select status from outbox_delivery order by id')).toEqual([
      'PROCESSING',
      'PENDING',
    ])
  })
})

describe('E3 a row has exactly the facts of its status', () => {
  test.each<[DeliveryStatus, string]>([
    ['PENDING', `lease_token = 1, locked_by = 'w', locked_until = now()`],
    ['PENDING', 'processed_at = now()'],
    ['PENDING', 'held = true'],
    ['PENDING', 'fresh = false'],
    ['PENDING', 'held = true, next_retry_at = now()'],
    ['PENDING', 'held_since = 1'],
    ['PENDING', 'next_retry_at = now()'],
    ['PENDING', 'attempt_count = -1'],
    ['PENDING', 'max_attempts = 0'],
    ['PROCESSING', 'lease_token = null, locked_by = null, locked_until = null'],
    ['PROCESSING', 'locked_by = null'],
    ['PROCESSING', 'locked_until = null'],
    ['PROCESSING', 'lease_token = null'],
    ['PROCESSING', 'processed_at = now()'],
    ['PROCESSING', 'held = true'],
    ['PROCESSING', 'fresh = true'],
    ['PROCESSING', 'held_since = 1'],
    ['PROCESSING', 'next_retry_at = now()'],
    ['DONE', 'processed_at = null'],
    ['DONE', `locked_by = 'w'`],
    ['DONE', 'held = true'],
    ['DONE', 'fresh = true'],
    ['DONE', 'held_since = 1'],
    ['DONE', 'suspect = true'],
    ['DONE', 'next_retry_at = now()'],
    ['DEAD', 'last_error_code = null'],
    ['DEAD', 'processed_at = now()'],
    ['DEAD', 'next_retry_at = now()'],
    ['DEAD', 'suspect = true'],
    ['DEAD', 'fresh = true'],
    ['DEAD', 'lease_token = 1'],
  ])('E3 %s refuses %s', async (from, assignments) => {
    await bring(from)
    expect(await refusal(set(assignments))).toBe('23514')
  })

  test('E3 the retry state lives in columns', async () => {
    const columns = await column<string>(
      db.pool,
      `select column_name::text from information_schema.columns where table_schema = $1 and table_name = 'outbox_delivery'`,
      [db.schema],
    )
    expect(columns).toEqual(
      expect.arrayContaining([
        'attempt_count',
        'max_attempts',
        'next_retry_at',
        'last_attempt_at',
        'last_error_code',
        'last_error_message',
        'locked_by',
        'locked_until',
        'created_at',
        'updated_at',
        'processed_at',
      ]),
    )
  })
})

describe('E6 removal', () => {
  test.each(STATUSES.filter((name) => name !== 'DONE'))('a %s delivery cannot be deleted', async (from) => {
    await bring(from)
    expect(await refusal(db.pool.query('delete from outbox_delivery'))).toBe('55000')
    expect(await status()).toBe(from)
  })

  test('deliveries cannot be truncated', async () => {
    expect(await refusal(db.pool.query('truncate outbox_delivery'))).toBe('55000')
  })
})

describe('E12 leaving DEAD', () => {
  const retry = (id: string): Promise<unknown> =>
    db.pool.query(`select outbox_retry($1, 'kim', 'fixed')`, [id])

  test('E12 an operator re-drives with outbox_retry: PENDING, attempts 0, now', async () => {
    const { letterId } = await makeDead(db, { eventId, held: true })
    await retry(letterId)
    const { rows } = await db.pool.query(
      `select status, attempt_count, held, suspect, next_retry_at <= clock_timestamp() as due from outbox_delivery`,
    )
    expect(rows).toEqual([{ status: 'PENDING', attempt_count: 0, held: true, suspect: false, due: true }])
  })

  test('E12 the permission ends with the transaction that resolved the dead letter', async () => {
    const { letterId } = await makeDead(db, { eventId })
    await retry(letterId)
    await move('PROCESSING')
    await move('DEAD')
    expect(await refusal(set(`status = 'PENDING', held = true, next_retry_at = now()`))).toBe('55000')
    expect(await refusal(set(`status = 'PENDING', fresh = true`))).toBe('55000')
  })

  test('E12 the permission is for that delivery alone', async () => {
    const other = await insertEvent(db.pool, { aggregateId: '2' })
    const { letterId } = await makeDead(db, { eventId })
    await makeDead(db, { eventId: other })
    const both = inTransaction(db, async (client) => {
      await client.query(`select outbox_retry($1, 'kim')`, [letterId])
      await client.query(`update outbox_delivery set status = 'PENDING', fresh = true where event_id = $1`, [
        other,
      ])
    })
    expect(await refusal(both)).toBe('55000')
    expect(await column(db.pool, 'select distinct status from outbox_delivery')).toEqual(['DEAD'])
  })

  test('E12 re-driving works inside a savepoint and is undone with it', async () => {
    const { letterId } = await makeDead(db, { eventId })
    await inTransaction(db, async (client) => {
      await client.query('savepoint a')
      await client.query(`select outbox_retry($1, 'kim')`, [letterId])
      expect(await one(client, 'select status from outbox_delivery')).toBe('PENDING')
      await client.query('rollback to savepoint a')
    })
    expect(await status()).toBe('DEAD')
    expect(await one(db.pool, 'select resolved from outbox_dead_letter')).toBe(false)
  })
})
