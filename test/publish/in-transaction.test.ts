import type { Pool, PoolClient } from 'pg'
import { describe, expect, expectTypeOf, test } from 'vitest'
import {
  inTransaction,
  inTransactionThen,
  type OnCommitted,
  type PooledTransaction,
  type TransactionPool,
} from '../../src/publish/in-transaction.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { InvalidOptionsError, UnknownOutcomeError } from '../../src/runtime/errors.ts'
import type { QueryResult, Transaction } from '../../src/store/transaction.ts'
import { turn } from '../queue/fakes.ts'

type Answer = QueryResult | Error

/** A pool of one client that answers by script and writes down what happens to it. */
function setup(answers: Readonly<Record<string, Answer | readonly Answer[]>> = {}) {
  const log: string[] = []
  const left = new Map(Object.entries(answers).map(([text, answer]) => [text, [answer].flat()]))
  const client: PooledTransaction = {
    query: async (text) => {
      log.push(text)
      const answer = left.get(text)?.shift() ?? {
        rows: [],
        rowCount: null,
        command: text.split(' ')[0] ?? '',
      }
      if (answer instanceof Error) throw answer
      return answer
    },
    release: (error) => log.push(error === undefined ? 'release' : 'destroy'),
    on: () => log.push('listen'),
    removeListener: () => log.push('unlisten'),
  }
  const waits: number[] = []
  const clock: Clock = {
    now: () => new Date(0),
    monotonicMs: () => 0,
    sleep: async (ms) => {
      waits.push(ms)
    },
  }
  const pool: TransactionPool = { connect: async () => client }
  return { pool, log, waits, quick: { clock, random: () => 0.5 } }
}

const withCode = (code: string, message = code): Error => Object.assign(new Error(message), { code })

describe('a transaction', () => {
  test('is committed, and gives back what the work returned', async () => {
    const { pool, log } = setup()
    const result = await inTransaction(pool, async (tx) => {
      await tx.query('insert')
      return 42
    })
    expect(result).toBe(42)
    expect(log).toEqual(['listen', 'BEGIN', 'insert', 'COMMIT', 'unlisten', 'release'])
  })

  test.each([
    ['read committed', 'BEGIN ISOLATION LEVEL READ COMMITTED'],
    ['repeatable read', 'BEGIN ISOLATION LEVEL REPEATABLE READ'],
    ['serializable', 'BEGIN ISOLATION LEVEL SERIALIZABLE'],
  ] as const)('runs at isolation level %s', async (isolation, begin) => {
    const { pool, log } = setup()
    await inTransaction(pool, async () => undefined, { isolation })
    expect(log).toContain(begin)
  })

  test('is rolled back when the work throws, and the error comes through as it is', async () => {
    const { pool, log } = setup()
    const error = new Error('no stock')
    await expect(inTransaction(pool, () => Promise.reject(error))).rejects.toBe(error)
    expect(log).toEqual(['listen', 'BEGIN', 'ROLLBACK', 'unlisten', 'release'])
  })

  test('loses its connection when it cannot be rolled back, and the first error is told', async () => {
    const { pool, log } = setup({ ROLLBACK: withCode('ECONNRESET') })
    const error = new Error('no stock')
    await expect(inTransaction(pool, () => Promise.reject(error))).rejects.toBe(error)
    expect(log.at(-1)).toBe('destroy')
  })

  test('that cannot begin gives its connection back', async () => {
    const { pool, log } = setup({ BEGIN: withCode('ECONNRESET'), ROLLBACK: withCode('ECONNRESET') })
    await expect(inTransaction(pool, async () => 1)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(log.at(-1)).toBe('destroy')
  })

  test('that the server rolled back at COMMIT is not taken for committed', async () => {
    const { pool, log } = setup({ COMMIT: { rows: [], rowCount: null, command: 'ROLLBACK' } })
    await expect(inTransaction(pool, async () => 1)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
    expect(log.at(-1)).toBe('release')
  })

  test('refuses options that cannot work, all of them at once', async () => {
    const { pool, log } = setup()
    const options = { isolation: 'snapshot' as never, retries: -1 }
    await expect(inTransaction(pool, async () => 1, options)).rejects.toThrow(InvalidOptionsError)
    await expect(inTransaction(pool, async () => 1, options)).rejects.toThrow(/isolation[^]*retries/)
    expect(log).toEqual([])
  })
})

describe('after a collision', () => {
  test.each(['40001', '40P01'])(
    'L4 with code %s all of it runs again, after a jittered wait',
    async (code) => {
      const { pool, log, waits, quick } = setup({ insert: [withCode(code), withCode(code)] })
      let runs = 0
      const result = await inTransaction(
        pool,
        async (tx) => {
          runs += 1
          await tx.query('insert')
          return runs
        },
        quick,
      )
      expect(result).toBe(3)
      expect(log.filter((entry) => entry === 'ROLLBACK')).toHaveLength(2)
      expect(log.filter((entry) => entry === 'COMMIT')).toHaveLength(1)
      expect(waits).toEqual([20, 40])
    },
  )

  test('at COMMIT it runs again too, because the server said that nothing was committed', async () => {
    const { pool, quick } = setup({ COMMIT: withCode('40001') })
    let runs = 0
    await inTransaction(
      pool,
      async () => {
        runs += 1
      },
      quick,
    )
    expect(runs).toBe(2)
  })

  test('that the work wrapped in an error of its own it runs again too', async () => {
    const { pool, quick } = setup()
    let runs = 0
    await inTransaction(
      pool,
      async () => {
        runs += 1
        if (runs === 1) throw new Error('could not book', { cause: withCode('40001') })
      },
      quick,
    )
    expect(runs).toBe(2)
  })

  test.each([
    [{}, 4],
    [{ retries: 0 }, 1],
    [{ retries: 1 }, 2],
  ])('it gives up in the end: %j', async (options, runs) => {
    const { pool, log, quick } = setup()
    const failing = () => Promise.reject(withCode('40001'))
    await expect(inTransaction(pool, failing, { ...quick, ...options })).rejects.toMatchObject({
      code: '40001',
    })
    expect(log.filter((entry) => entry === 'BEGIN')).toHaveLength(runs)
  })

  test('other errors are not tried again', async () => {
    const { pool, log, quick } = setup({ insert: withCode('23505') })
    await expect(inTransaction(pool, (tx) => tx.query('insert'), quick)).rejects.toMatchObject({
      code: '23505',
    })
    expect(log.filter((entry) => entry === 'BEGIN')).toHaveLength(1)
  })
})

describe('when COMMIT fails', () => {
  test.each(['ECONNRESET', 'EPIPE', '08006', '57P01', 'XX000'])(
    'with %s the outcome is unknown',
    async (code) => {
      const { pool, log, quick } = setup({ COMMIT: withCode(code) })
      const running = inTransaction(pool, async () => 1, quick)
      await expect(running).rejects.toThrow(UnknownOutcomeError)
      await expect(running).rejects.toThrow('Run it again with the same event ids')
      await expect(running).rejects.toMatchObject({ cause: { code } })
      expect(log).toEqual(['listen', 'BEGIN', 'COMMIT', 'unlisten', 'destroy'])
    },
  )

  test('without any code the outcome is unknown', async () => {
    const { pool } = setup({ COMMIT: new Error('Connection terminated unexpectedly') })
    await expect(inTransaction(pool, async () => 1)).rejects.toThrow(UnknownOutcomeError)
  })

  test('with an answer of the server (a deferred constraint) it is known', async () => {
    const { pool, log } = setup({ COMMIT: withCode('23503') })
    await expect(inTransaction(pool, async () => 1)).rejects.toMatchObject({ code: '23503' })
    expect(log.at(-1)).toBe('release')
  })
})

describe('afterCommit', () => {
  test('runs once, after the commit and with the connection given back', async () => {
    const { pool, log } = setup()
    await inTransaction(pool, async () => 1, { afterCommit: () => void log.push('afterCommit') })
    expect(log.slice(-3)).toEqual(['unlisten', 'release', 'afterCommit'])
  })

  test('does not run after a roll-back', async () => {
    const { pool, log } = setup()
    const afterCommit = (): void => void log.push('afterCommit')
    await expect(inTransaction(pool, () => Promise.reject(new Error('x')), { afterCommit })).rejects.toThrow(
      'x',
    )
    expect(log).not.toContain('afterCommit')
  })

  test('that fails says that the transaction is committed, and runs nothing again', async () => {
    const { pool, log, quick } = setup()
    const afterCommit = () => Promise.reject(withCode('40001'))
    const running = inTransaction(pool, async () => 1, { afterCommit, ...quick })
    await expect(running).rejects.toMatchObject({ code: 'AFTER_COMMIT_FAILED' })
    expect(log.filter((entry) => entry === 'BEGIN')).toHaveLength(1)
  })
})

test('pg fits as it is, and its own types come through', () => {
  expectTypeOf<PoolClient>().toExtend<Transaction>()
  expectTypeOf<PoolClient>().toExtend<PooledTransaction>()
  expectTypeOf<Pool>().toExtend<TransactionPool>()
  const typed = (pool: Pool): Promise<number> =>
    inTransaction(pool, async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<PoolClient>()
      const { rows } = await tx.query<{ id: number }>('select 1 as id')
      return rows[0]?.id ?? 0
    })
  expect(typed).toBeTypeOf('function')
})

describe('what follows a commit on its client', () => {
  const NOTIFY = 'notify somebody'
  const telling = (client: PooledTransaction): Promise<unknown> => client.query(NOTIFY)
  const withHook = (onCommitted: OnCommitted) => ({
    onCommitted,
    commitWith: () => null,
    beginWith: () => null,
    mayTell: () => false,
  })

  test('is sent at once and not waited for, but the client goes back only after it', async () => {
    const { pool, log } = setup()
    let answer: () => void = () => undefined
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    const result = await inTransactionThen(
      pool,
      async () => 42,
      {},
      withHook((client) => Promise.all([telling(client), answered])),
    )
    expect(result).toBe(42)
    expect(log).toEqual(['listen', 'BEGIN', 'COMMIT', NOTIFY])
    answer()
    await turn()
    expect(log.slice(4)).toEqual(['unlisten', 'release'])
  })

  test.each([
    ['keeps its connection where the server refused it', withCode('54000', 'queue is full'), 'release'],
    ['loses its connection where that broke', withCode('ECONNRESET'), 'destroy'],
  ])('never makes the transaction look failed, and %s', async (_what, error, end) => {
    const { pool, log } = setup({ [NOTIFY]: error })
    expect(await inTransactionThen(pool, async () => 42, {}, withHook(telling))).toBe(42)
    await turn()
    expect(log.slice(2)).toEqual(['COMMIT', NOTIFY, 'unlisten', end])
  })

  test('is not begun where nothing was committed', async () => {
    const { pool, log } = setup({ COMMIT: withCode('23503') })
    await expect(inTransactionThen(pool, async () => 42, {}, withHook(telling))).rejects.toThrow('23503')
    expect(log).not.toContain(NOTIFY)
    expect(log.at(-1)).toBe('release')
  })
})
