import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createOutbox } from '../../src/index.ts'
import { property } from '../../src/runtime/property.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { createOutboxDatabase, type OutboxDatabase, one } from '../store/postgres/fixtures.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { events } from './support.ts'

const ORDER = { aggregateId: 'o-1', payload: { total: 1 } }
const ADD = 'update account set balance = balance + $1'

let db: OutboxDatabase
/** Of one client, which has to be given back. */
let pool: pg.Pool
const ours = new WeakSet<object>()
beforeAll(async () => {
  db = await createOutboxDatabase()
  await db.pool.query('create table account (balance int not null)')
})
afterAll(() => db.drop())
beforeEach(async () => {
  pool = sturdyPool({ connectionString: db.url, max: 1 })
  pool.on('connect', (client) => ours.add(client))
  await db.pool.query('delete from account')
  await db.pool.query('insert into account values (100)')
})
afterEach(() => {
  vi.restoreAllMocks()
  return pool.end()
})

const outboxOf = () =>
  createOutbox({ store: postgresStore({ pool: db.pool, schema: db.schema }), events, notify: false })
const balance = (): Promise<number> => one(db.pool, 'select balance from account')
const eventCount = (): Promise<number> => one(db.pool, 'select count(*)::int from outbox_event')

/** Stands before the clients of our pool, and of no other: whatever else runs in this process has clients of its own. */
function standBefore(answer: (given: unknown[], pass: () => unknown) => unknown): void {
  const query = property(pg.Client.prototype, 'query') as () => unknown
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...given: unknown[]) {
    const pass = (): unknown => Reflect.apply(query, this, given)
    return ours.has(this) ? answer(given, pass) : pass()
  })
}

/** What the clients are given to send, in its order. */
function sentTexts(): unknown[] {
  const texts: unknown[] = []
  standBefore(([first], pass) => {
    texts.push(typeof first === 'string' ? first : property(first, 'text'))
    return pass()
  })
  return texts
}

const byCallback = (tx: pg.PoolClient, text: string): Promise<unknown> =>
  new Promise((resolve, reject) => {
    tx.query(text, (error, result) => (error instanceof Error ? reject(error) : resolve(result)))
  })

class Forwarding implements Transaction {
  readonly #client: pg.PoolClient
  constructor(client: pg.PoolClient) {
    this.#client = client
  }
  query(text: string, params?: readonly unknown[]): Promise<pg.QueryResult> {
    return this.#client.query(text, params as unknown[])
  }
  getTransactionStatus(): unknown {
    const status = property(this.#client, 'getTransactionStatus') as () => unknown
    return Reflect.apply(status, this.#client, [])
  }
}

describe('the first statement', () => {
  const wrappers: [string, (tx: pg.PoolClient) => Transaction][] = [
    ['a Proxy', (tx) => new Proxy(tx, {})],
    ['an heir', (tx) => Object.create(tx) as Transaction],
    ['a class that forwards', (tx) => new Forwarding(tx)],
  ]
  test.each(wrappers)('may be an event that is published through %s of the client', async (_, wrap) => {
    const outbox = outboxOf()
    const before = await eventCount()
    await outbox.inTransaction(pool, (tx) => outbox.publish(wrap(tx), 'OrderPlaced', ORDER))
    expect(await eventCount()).toBe(before + 1)
    const failing = outbox.inTransaction(pool, async (tx) => {
      await outbox.publish(wrap(tx), 'OrderPlaced', ORDER)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await eventCount()).toBe(before + 1)
  })

  test('does not go on before what waited for it was sent', async () => {
    const texts = sentTexts()
    await outboxOf().inTransaction(pool, async (tx) => {
      const first = tx.query('select $1::int as a', [1])
      const beside = [tx.query('select 2'), byCallback(tx, 'select 3'), tx.query('select $1::int', [4])]
      await first
      await tx.query('select 5')
      await Promise.all(beside)
    })
    expect(texts).toEqual([
      'select $1::int as a',
      'select 2',
      'select 3',
      'select $1::int',
      'select 5',
      'COMMIT',
    ])
  })

  test('may be an event, and what comes after it is sent in its order, however it is answered', async () => {
    const outbox = outboxOf()
    const texts = sentTexts()
    await outbox.inTransaction(pool, async (tx) => {
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      await Promise.all([tx.query('select 1'), byCallback(tx, 'select 2'), tx.query('select 3')])
    })
    expect(texts).toEqual([expect.stringMatching(/^call /), 'select 1', 'select 2', 'select 3', 'COMMIT'])
  })

  test('may be empty', async () => {
    const { command } = await outboxOf().inTransaction(pool, async (tx) => {
      await tx.query('', [1])
      return tx.query(ADD, [1])
    })
    expect(command).toBe('UPDATE')
    expect(await balance()).toBe(101)
    expect(pool.idleCount).toBe(1)
  })

  type Asked = { callback(error: unknown, result?: unknown): void }
  const ends: [string, string, (asked: Asked) => void][] = [
    ['ended with an error', 'aborted', (asked) => asked.callback(new Error('aborted'))],
    ['ended as if all were well', 'BEGIN was not run', (asked) => asked.callback(null, { rows: [] })],
    [
      'refused by whoever stands before the client',
      'aborted',
      () => {
        throw new Error('aborted')
      },
    ],
  ]
  test.each(ends)('that is %s without being sent fails the transaction', async (_, message, end) => {
    let isFirst = true
    standBefore(([asked], pass) => {
      if (!isFirst) return pass()
      isFirst = false
      return end(asked as Asked)
    })
    const outbox = outboxOf()
    const failing = outbox.inTransaction(pool, async (tx) => {
      await expect((async () => tx.query(ADD, [1]))()).rejects.toThrow(message)
      await expect(tx.query(ADD, [1])).rejects.toThrow(message)
    })
    await expect(failing).rejects.toThrow(message)
    expect(pool.idleCount).toBe(1)
    await outbox.inTransaction(pool, (tx) => tx.query(ADD, [1]))
    expect(await balance()).toBe(101)
  })

  test('whose values cannot be written leaves the transaction as it is', async () => {
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    await outboxOf().inTransaction(pool, async (tx) => {
      await expect(tx.query('select $1::jsonb', [circular])).rejects.toThrow(/circular/)
      await tx.query(ADD, [1])
    })
    expect(await balance()).toBe(101)
    const failing = outboxOf().inTransaction(pool, async (tx) => {
      await expect(tx.query('select $1::jsonb', [circular])).rejects.toThrow(/circular/)
      await tx.query(ADD, [1])
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await balance()).toBe(101)
  })

  test('that fails says who sent it', async () => {
    const failing = outboxOf().inTransaction(pool, async (tx) => {
      await tx.query('select 1 / $1::int', [0])
    })
    const error: unknown = await failing.catch((thrown: unknown) => thrown)
    expect(property(error, 'stack')).toContain('first-statement.test.ts')
  })
})
