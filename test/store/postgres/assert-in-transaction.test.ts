import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { assertInTransaction } from '../../../src/store/postgres/assert-in-transaction.ts'
import { insertEvents } from '../../../src/store/postgres/insert-events.ts'
import type { Transaction } from '../../../src/store/transaction.ts'
import {
  createOutboxDatabase,
  inRolledBack,
  newEvent,
  type OutboxDatabase,
  one,
  refusal,
  wrapped,
} from './fixtures.ts'

let db: OutboxDatabase

beforeEach(async () => {
  db = await createOutboxDatabase()
})
afterEach(async () => {
  await db.drop()
})

describe('publishing outside a transaction', () => {
  const plain = (client: pg.PoolClient): Transaction => ({
    query: (text, params) => client.query(text, params as unknown[]),
  })
  const kinds: [string, (client: pg.PoolClient) => Transaction][] = [
    ['a pg client, which knows', (client) => client],
    ['a client that only has query', plain],
    ['a client that wraps errors', wrapped],
  ]

  test.each(kinds)('is refused before anything is written: %s', async (_, wrap) => {
    const client = await db.pool.connect()
    try {
      await expect(assertInTransaction(wrap(client))).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
      await client.query('begin')
      await expect(assertInTransaction(wrap(client))).resolves.toBeUndefined()
      await expect(assertInTransaction(wrap(client))).resolves.toBeUndefined()
      await insertEvents(wrap(client), db.quoted, [newEvent()], { onDuplicate: 'error' })
      await refusal(client.query('select 1 / 0'))
      await expect(assertInTransaction(wrap(client))).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
      await expect(
        insertEvents(wrap(client), db.quoted, [newEvent()], { onDuplicate: 'error' }),
      ).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
      await client.query('rollback')
      await expect(assertInTransaction(wrap(client))).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    } finally {
      client.release()
    }
  })

  test('is refused for a pool, which is no transaction', async () => {
    // @ts-expect-error nor is it one for the compiler
    await expect(assertInTransaction(db.pool)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
  })

  test('a pg client is asked nothing over the wire', async () => {
    await inRolledBack(db, async (client) => {
      const before = randomUUID()
      await client.query(`select '${before}'`)
      await assertInTransaction(client)
      const last = `select query from pg_stat_activity where pid = $1`
      expect(await one(db.pool, last, [(client as unknown as { processID: number }).processID])).toContain(
        before,
      )
    })
  })
})
