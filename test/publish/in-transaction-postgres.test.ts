import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inTransaction } from '../../src/publish/in-transaction.ts'
import { UnknownOutcomeError } from '../../src/runtime/errors.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  await pool.query('create table account (id int primary key, balance int not null)')
  await pool.query('create table child (id int references account (id) deferrable initially deferred)')
  await pool.query('insert into account values (1, 100), (2, 100)')
})
afterAll(() => database.drop())

async function balanceOf(id: number): Promise<number | undefined> {
  const { rows } = await pool.query<{ balance: number }>('select balance from account where id = $1', [id])
  return rows[0]?.balance
}

describe('on PostgreSQL', () => {
  test('I3 a roll-back leaves nothing, a commit everything', async () => {
    const failing = inTransaction(pool, async (tx) => {
      await tx.query('insert into account values (10, 1)')
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await balanceOf(10)).toBeUndefined()
    await inTransaction(pool, (tx) => tx.query('insert into account values (10, 1)'))
    expect(await balanceOf(10)).toBe(1)
  })

  test('an error that the work swallowed is found out at COMMIT', async () => {
    const swallowing = inTransaction(pool, async (tx) => {
      await tx.query('insert into account values (11, 1)')
      await tx.query('select 1 / 0').catch(() => undefined)
    })
    await expect(swallowing).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
    expect(await balanceOf(11)).toBeUndefined()
  })

  test('a deferred constraint fails COMMIT with the answer of the server', async () => {
    const dangling = inTransaction(pool, (tx) => tx.query('insert into child values (999)'))
    await expect(dangling).rejects.toMatchObject({ code: '23503' })
  })

  test('a backend that is ended in the middle fails the transaction, not the process', async () => {
    const ended = inTransaction(pool, async (tx) => {
      const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
      await pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
      await tx.query('insert into account values (12, 1)')
    })
    await expect(ended).rejects.toThrow()
    await expect(ended).rejects.not.toThrow(UnknownOutcomeError)
    expect(await balanceOf(12)).toBeUndefined()
  })

  test('a backend that is ended before COMMIT leaves the outcome unknown', async () => {
    const ended = inTransaction(pool, async (tx) => {
      const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
      await pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
    })
    await expect(ended).rejects.toThrow(UnknownOutcomeError)
  })

  test('L4 transactions that collide run again until each has had its effect once', async () => {
    const isolation = 'serializable'
    const withdraw = (from: number, to: number): Promise<void> =>
      inTransaction(
        pool,
        async (tx) => {
          const { rows } = await tx.query<{ sum: string }>(
            'select sum(balance) as sum from account where id in (1, 2)',
          )
          expect(rows[0]?.sum).toBe('200')
          await tx.query('update account set balance = balance - 1 where id = $1', [from])
          await tx.query('update account set balance = balance + 1 where id = $1', [to])
        },
        { isolation, retries: 50 },
      )
    await Promise.all(
      Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? withdraw(1, 2) : withdraw(2, 1))),
    )
    expect([await balanceOf(1), await balanceOf(2)]).toEqual([100, 100])
  })
})
