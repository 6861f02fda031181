import type pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { insertEvents } from '../../../src/store/postgres/insert-events.ts'
import type { Transaction } from '../../../src/store/transaction.ts'
import {
  createOutboxDatabase,
  inRolledBack,
  inTransaction,
  newEvent,
  type OutboxDatabase,
  one,
  wrapped,
} from './fixtures.ts'

let db: OutboxDatabase

beforeEach(async () => {
  db = await createOutboxDatabase()
})
afterEach(async () => {
  await db.drop()
})

const publish = (tx: Transaction, ...events: Parameters<typeof newEvent>[0][]): Promise<unknown> =>
  insertEvents(tx, db.quoted, events.map(newEvent), { onDuplicate: 'error' })

test('under array_nulls = off what is not given is still nothing, and what is given stays what it is', async () => {
  await inTransaction(db, async (tx) => {
    await tx.query('set local array_nulls = off')
    await publish(tx, {}, { orderingKey: 'NULL', sequenced: true }, { orderingKey: '' }, { orderingKey: '=' })
    await publish(tx, {})
    await publish(tx, { orderingKey: '==' })
  })
  const { rows } = await db.pool.query(
    `select ordering_key, sequence, occurred_at > now() - interval '1 hour' as is_now from outbox_event
      order by ordering_key nulls first`,
  )
  expect(rows).toEqual([
    { ordering_key: null, sequence: null, is_now: true },
    { ordering_key: null, sequence: null, is_now: true },
    { ordering_key: '', sequence: null, is_now: true },
    { ordering_key: '=', sequence: null, is_now: true },
    { ordering_key: '==', sequence: null, is_now: true },
    { ordering_key: 'NULL', sequence: '1', is_now: true },
  ])
})

test.each([
  ['LATIN1', 'a pg client', (client: pg.PoolClient): Transaction => client],
  ['LATIN1', 'a client that wraps errors', wrapped],
  ['EUC_KR', 'a pg client', (client: pg.PoolClient): Transaction => client],
  ['UHC', 'a pg client', (client: pg.PoolClient): Transaction => client],
  ['WIN1252', 'a pg client', (client: pg.PoolClient): Transaction => client],
])('a session that says it speaks %s, where UTF-8 arrives, is refused: %s', async (encoding, _, wrap) => {
  await inRolledBack(db, async (tx) => {
    await tx.query(`set local client_encoding = '${encoding}'`)
    await expect(publish(wrap(tx), { aggregateId: '김철수' })).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining(`client_encoding of this session is not 'UTF8'`),
    })
  })
})

test.each(['UTF8', 'SQL_ASCII'])('a session that says %s stores what it is sent', async (encoding) => {
  await inTransaction(db, async (tx) => {
    await tx.query(`set local client_encoding = '${encoding}'`)
    await publish(tx, { aggregateId: '김철수' })
  })
  expect(await one(db.pool, 'select aggregate_id from outbox_event')).toBe('김철수')
})
