import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createOutbox } from '../../src/index.ts'
import { UnknownOutcomeError } from '../../src/runtime/errors.ts'
import { property } from '../../src/runtime/property.ts'
import { beginWith } from '../../src/store/postgres/begin-with.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { openTail, type TransactionTail } from '../../src/store/transaction-tail.ts'
import { createOutboxDatabase, type OutboxDatabase, one } from '../store/postgres/fixtures.ts'
import { events, roundTrips } from './support.ts'

const ORDER = { aggregateId: 'o-1', payload: { total: 1 } }
const ADD = 'update account set balance = balance + $1 returning balance'

let db: OutboxDatabase
beforeAll(async () => {
  db = await createOutboxDatabase()
  await db.pool.query('create table account (balance int not null)')
})
afterAll(() => db.drop())
beforeEach(async () => {
  await db.pool.query('delete from account')
  await db.pool.query('insert into account values (100)')
})

const outboxOf = () =>
  createOutbox({ store: postgresStore({ pool: db.pool, schema: db.schema }), events, notify: false })
const balance = (): Promise<number> => one(db.pool, 'select balance from account')
const eventCount = (): Promise<number> => one(db.pool, 'select count(*)::int from outbox_event')

describe('BEGIN', () => {
  test('goes with the first statement, whose result is that of the statement alone', async () => {
    let answers = (): number => 0
    const result = await outboxOf().inTransaction(db.pool, (tx) => {
      answers = roundTrips(tx)
      return tx.query(ADD, [1])
    })
    expect(result).toMatchObject({ command: 'UPDATE', rowCount: 1, rows: [{ balance: 101 }] })
    expect(answers()).toBe(2)
    expect(await balance()).toBe(101)
  })

  test('goes with what is published and COMMIT in one round trip where there is nothing else', async () => {
    const outbox = outboxOf()
    const before = await eventCount()
    let answers = (): number => 0
    await outbox.inTransaction(db.pool, async (tx) => {
      answers = roundTrips(tx)
      await outbox.publish(tx, 'OrderPlaced', ORDER)
    })
    expect(answers()).toBe(1)
    expect(await eventCount()).toBe(before + 1)
  })

  test('goes with what is published where a statement follows, and is undone with both', async () => {
    const outbox = outboxOf()
    const before = await eventCount()
    let answers = (): number => 0
    const failing = outbox.inTransaction(db.pool, async (tx) => {
      answers = roundTrips(tx)
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      await tx.query(ADD, [1])
      expect(answers()).toBe(2)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(answers()).toBe(3)
    expect(await eventCount()).toBe(before)
    expect(await balance()).toBe(100)
  })

  test('is never sent, nor is COMMIT or ROLLBACK, where nothing else is', async () => {
    const outbox = outboxOf()
    const answers: (() => number)[] = []
    expect(
      await outbox.inTransaction(db.pool, async (tx) => {
        answers.push(roundTrips(tx))
        return 'done'
      }),
    ).toBe('done')
    const failing = outbox.inTransaction(db.pool, async (tx) => {
      answers.push(roundTrips(tx))
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(answers.map((count) => count())).toEqual([0, 0])
  })

  test('has the isolation level that was asked for', async () => {
    const level = await outboxOf().inTransaction(
      db.pool,
      async (tx) => {
        const { rows } = await tx.query(
          `select current_setting('transaction_isolation') as level, $1::int`,
          [1],
        )
        return rows[0]
      },
      { isolation: 'serializable' },
    )
    expect(level).toMatchObject({ level: 'serializable' })
  })

  const undone: [string, (tx: pg.PoolClient) => Promise<unknown>][] = [
    ['without values', (tx) => tx.query('update account set balance = 0')],
    ['as an object', (tx) => tx.query({ text: ADD, values: [1] })],
    ['by name', (tx) => tx.query({ name: 'add', text: ADD, values: [1] })],
    [
      'with a callback',
      (tx) =>
        new Promise((resolve, reject) => {
          tx.query(ADD, [1], (error, result) =>
            error === null || error === undefined ? resolve(result) : reject(error),
          )
        }),
    ],
    ['with another beside it', (tx) => Promise.all([tx.query(ADD, [1]), tx.query(ADD, [1])])],
  ]
  test.each(undone)('comes before a first statement %s, which is undone with the rest', async (_, send) => {
    const failing = outboxOf().inTransaction(db.pool, async (tx) => {
      await send(tx)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await balance()).toBe(100)
  })

  const nobodyWaits: [string, (tx: pg.PoolClient) => Promise<unknown>[]][] = [
    ['the answer to BEGIN', (tx) => [tx.query(ADD, [1]), tx.query(ADD, [1]), tx.query(ADD, [1])]],
    ['BEGIN alone', (tx) => [tx.query({ text: ADD, values: [1] }), tx.query(ADD, [1])]],
  ]
  test.each(nobodyWaits)('is undone with what waits for %s when the work fails', async (_, send) => {
    const sent: Promise<unknown>[] = []
    const failing = outboxOf().inTransaction(db.pool, async (tx) => {
      sent.push(...send(tx))
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    await Promise.allSettled(sent)
    expect(await balance()).toBe(100)
  })

  test('is undone with what waits for a published event when the work fails', async () => {
    const outbox = outboxOf()
    let sent: Promise<unknown> | undefined
    const failing = outbox.inTransaction(db.pool, async (tx) => {
      await tx.query(ADD, [1])
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      sent = tx.query(ADD, [1])
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    await Promise.allSettled([sent])
    expect(await balance()).toBe(100)
  })

  test('and COMMIT are known not to have happened on a connection that was lost before', async () => {
    const outbox = outboxOf()
    const before = await eventCount()
    const lost = outbox.inTransaction(db.pool, async (tx) => {
      const gone = new Promise((resolve) => tx.once('end', resolve))
      const pid = property(tx, 'processID')
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      await db.pool.query('select pg_terminate_backend($1)', [pid])
      await gone
    })
    await expect(lost).rejects.toThrow(/not queryable/)
    await expect(lost).rejects.not.toThrow(UnknownOutcomeError)
    expect(await eventCount()).toBe(before)
    await outbox.inTransaction(db.pool, (tx) => outbox.publish(tx, 'OrderPlaced', ORDER))
    expect(await eventCount()).toBe(before + 1)
  })

  test('stands when the first statement fails: what comes after it fails too', async () => {
    const failing = outboxOf().inTransaction(db.pool, async (tx) => {
      await expect(tx.query('select 1 / $1::int', [0])).rejects.toMatchObject({ code: '22012' })
      await expect(tx.query(ADD, [1])).rejects.toMatchObject({ code: '25P02' })
    })
    await expect(failing).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
    expect(await balance()).toBe(100)
  })
})

describe('where BEGIN is refused', () => {
  const REFUSED = { code: '42601' }
  const open = async (): Promise<{ tx: pg.PoolClient; tail: TransactionTail }> => {
    const tx = await db.pool.connect()
    const tail = openTail(tx, { text: 'BEGIN NONSENSE', beginWith: beginWith(tx) })
    if (tail === null) throw new Error('what is sent on a client of pg goes past a tail')
    return { tx, tail }
  }

  const ways: [string, (tx: pg.PoolClient) => Promise<unknown>][] = [
    ['with values', (tx) => tx.query(ADD, [1])],
    ['without values', (tx) => tx.query('update account set balance = 0')],
    [
      'with a callback',
      (tx) =>
        new Promise((resolve, reject) => {
          tx.query(ADD, [1], (error, result) =>
            error === null || error === undefined ? resolve(result) : reject(error),
          )
        }),
    ],
  ]
  test.each(ways)('a first statement %s is not run, and nothing after it is', async (_, send) => {
    const { tx, tail } = await open()
    const beside = [send(tx), send(tx)]
    for (const { status, reason } of (await Promise.allSettled(beside)) as PromiseRejectedResult[]) {
      expect(status).toBe('rejected')
      expect(reason).toMatchObject(REFUSED)
    }
    await expect(send(tx)).rejects.toMatchObject(REFUSED)
    await expect(tail.end()).rejects.toMatchObject(REFUSED)
    tx.release()
    expect(await balance()).toBe(100)
  })
})
