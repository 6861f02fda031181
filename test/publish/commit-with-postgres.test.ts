import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createOutbox } from '../../src/index.ts'
import { DuplicateEventError, NotInTransactionError, UnknownOutcomeError } from '../../src/runtime/errors.ts'
import { property } from '../../src/runtime/property.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { openTail } from '../../src/store/transaction-tail.ts'
import { createOutboxDatabase, type OutboxDatabase, one } from '../store/postgres/fixtures.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { eventually } from '../support/program.ts'
import { events, roundTrips, UUID } from './support.ts'

const ORDER = { aggregateId: 'o-1', payload: { total: 1 } }

let db: OutboxDatabase
beforeAll(async () => {
  db = await createOutboxDatabase()
  await db.pool.query('create table account (id int primary key, balance int not null)')
  await db.pool.query('create table child (id int references account (id) deferrable initially deferred)')
  await db.pool.query('insert into account values (1, 100), (2, 100)')
})
afterAll(() => db.drop())

const outboxOn = (pool: pg.Pool, schema = db.schema) =>
  createOutbox({ store: postgresStore({ pool, schema }), events, notify: false })

const eventCount = (): Promise<number> => one(db.pool, 'select count(*)::int from outbox_event')
let before = 0
beforeEach(async () => {
  before = await eventCount()
})
const newEvents = async (): Promise<number> => (await eventCount()) - before

describe('an event that is the last thing of its transaction', () => {
  test('goes with COMMIT, in one round trip', async () => {
    const outbox = outboxOn(db.pool)
    let answers = (): number => 0
    await outbox.inTransaction(db.pool, async (tx) => {
      answers = roundTrips(tx)
      await tx.query('update account set balance = balance + 1 where id = $1', [1])
      await outbox.publish(tx, 'OrderPlaced', ORDER)
    })
    expect(answers()).toBe(2)
    expect(await newEvents()).toBe(1)
  })

  test('leaves nothing behind on the client, after a failure neither', async () => {
    const outbox = outboxOn(db.pool)
    const clients: pg.PoolClient[] = []
    await outbox.inTransaction(db.pool, async (tx) => {
      clients.push(tx)
      await outbox.publish(tx, 'OrderPlaced', ORDER)
    })
    const failing = outbox.inTransaction(db.pool, async (tx) => {
      clients.push(tx)
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    for (const client of clients) {
      expect(await one(client, 'select count(*)::int from outbox_event')).toBe(before + 1)
    }
    expect(await newEvents()).toBe(1)
  })

  test('and has the error of the server against it, fails the transaction with that error, explained', async () => {
    const outbox = outboxOn(db.pool, 'not_there')
    const publishing = outbox.inTransaction(db.pool, async (tx) => {
      await tx.query('update account set balance = -1 where id = 2')
      await outbox.publish(tx, 'OrderPlaced', ORDER)
    })
    await expect(publishing).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    expect(await one(db.pool, 'select balance from account where id = 2')).toBe(100)
  })

  test('is rolled back with the rest where COMMIT itself is refused', async () => {
    const outbox = outboxOn(db.pool)
    const dangling = outbox.inTransaction(db.pool, async (tx) => {
      await tx.query('insert into child values (999)')
      await outbox.publish(tx, 'OrderPlaced', ORDER)
    })
    await expect(dangling).rejects.toMatchObject({ code: '23503' })
    expect(await newEvents()).toBe(0)
  })

  test('is refused in a transaction that failed, and whose error was swallowed', async () => {
    const outbox = outboxOn(db.pool)
    const swallowing = outbox.inTransaction(db.pool, async (tx) => {
      const published = outbox.publish(tx, 'OrderPlaced', ORDER)
      await tx.query('select 1 / 0').catch(() => undefined)
      await published
    })
    await expect(swallowing).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
    expect(await newEvents()).toBe(0)
  })

  test('is published once where the transaction collides with another and runs again', async () => {
    const outbox = outboxOn(db.pool)
    let runs = 0
    await outbox.inTransaction(
      db.pool,
      async (tx) => {
        runs += 1
        await tx.query('select balance from account where id = 1')
        if (runs === 1) await db.pool.query('update account set balance = balance + 1 where id = 1')
        await tx.query('update account set balance = balance + 1 where id = 1')
        await outbox.publish(tx, 'OrderPlaced', ORDER)
      },
      { isolation: 'repeatable read', random: () => 0 },
    )
    expect(runs).toBe(2)
    expect(await newEvents()).toBe(1)
  })
})

describe('an event with something after it', () => {
  test('is there for the next statement, and events keep the order of their calls', async () => {
    const outbox = outboxOn(db.pool)
    const ids = await outbox.inTransaction(db.pool, async (tx) => {
      const published = [await outbox.publish(tx, 'OrderPlaced', ORDER)]
      expect(await one(tx, 'select count(*)::int from outbox_event')).toBe(before + 1)
      const together = [1, 2, 3].map(() => outbox.publish(tx, 'OrderPlaced', ORDER))
      published.push(...(await Promise.all(together)))
      return published
    })
    const { rows } = await db.pool.query('select event_id from outbox_event order by id desc limit 4')
    expect(rows.map(({ event_id }) => event_id).toReversed()).toEqual(ids)
  })

  test.each([
    ['a callback', (tx: pg.PoolClient, done: () => void) => tx.query('select 1', () => done())],
    [
      'an object of its own',
      (tx: pg.PoolClient, done: () => void) => tx.query(new pg.Query('select 1', done)),
    ],
  ])('is sent before a statement that answers by %s', async (_how, ask) => {
    const outbox = outboxOn(db.pool)
    await outbox.inTransaction(db.pool, async (tx) => {
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      await new Promise<void>((resolve) => ask(tx, resolve))
      expect(await one(tx, 'select count(*)::int from outbox_event')).toBe(before + 1)
    })
  })

  test('fails what comes next with its own error, explained', async () => {
    const outbox = outboxOn(db.pool, 'not_there')
    const publishing = outbox.inTransaction(db.pool, async (tx) => {
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      await tx.query('select 1')
    })
    await expect(publishing).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })

  test('is undone with its savepoint, and stays where it was published before that', async () => {
    const outbox = outboxOn(db.pool)
    const kept = await outbox.inTransaction(db.pool, async (tx) => {
      const eventId = await outbox.publish(tx, 'OrderPlaced', ORDER)
      await tx.query('savepoint a')
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      await tx.query('rollback to savepoint a')
      return eventId
    })
    expect(await newEvents()).toBe(1)
    expect(await one(db.pool, 'select event_id from outbox_event order by id desc limit 1')).toBe(kept)
  })

  test('is refused at once after a savepoint, so that it can be undone', async () => {
    const missing = outboxOn(db.pool, 'not_there')
    await outboxOn(db.pool).inTransaction(db.pool, async (tx) => {
      await tx.query({ text: 'SAVEPOINT a' })
      const refused = missing.publish(tx, 'OrderPlaced', ORDER)
      await expect(refused).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
      await tx.query('rollback to savepoint a')
      await tx.query('update account set balance = 7 where id = 2')
    })
    expect(await one(db.pool, 'select balance from account where id = 2')).toBe(7)
  })

  test('is refused at once where its id was given and is there already', async () => {
    const outbox = outboxOn(db.pool)
    const again = outbox.inTransaction(db.pool, async (tx) => {
      await outbox.publish(tx, 'OrderPlaced', { ...ORDER, eventId: UUID })
      await expect(outbox.publish(tx, 'OrderPlaced', { ...ORDER, eventId: UUID })).rejects.toThrow(
        DuplicateEventError,
      )
      throw new Error('seen')
    })
    await expect(again).rejects.toThrow('seen')
  })
})

test('events that nobody waited for go before COMMIT or with it, in the order of their calls', async () => {
  const outbox = outboxOn(db.pool)
  const { settled } = await outbox.inTransaction(db.pool, async (tx) => {
    const publishing = [1, 2, 3, 4].map(() => outbox.publish(tx, 'OrderPlaced', ORDER))
    return { settled: Promise.all(publishing) }
  })
  const ids = await settled
  const { rows } = await db.pool.query('select event_id from outbox_event order by id desc limit 4')
  expect(rows.map(({ event_id }) => event_id).toReversed()).toEqual(ids)
  expect(await newEvents()).toBe(4)
})

test('an event that comes when COMMIT goes without it is refused', async () => {
  const outbox = outboxOn(db.pool)
  const client = await outbox.inTransaction(db.pool, async (tx) => tx)
  await expect(outbox.publish(client, 'OrderPlaced', ORDER)).rejects.toThrow(NotInTransactionError)
  const tail = openTail(client, { text: 'BEGIN', beginWith: null })
  const ending = tail?.end()
  const statement = { text: 'select 1', values: [], explain: (error: unknown) => error }
  await expect(tail?.hold(statement)).rejects.toThrow(NotInTransactionError)
  expect(await ending).toBeNull()
})

describe('where the answer to both is lost', () => {
  test.each([
    ['request', 0],
    ['reply', 1],
  ] as const)('with the %s, nobody says what became of them', async (part, written) => {
    await using proxy = await startFaultProxy(db.url)
    const pool = new pg.Pool({ connectionString: proxy.urlOf(db.url), max: 1 })
    pool.on('error', () => undefined)
    const outbox = outboxOn(pool)
    const lost = proxy.loseNextCommit(part)
    const publishing = outbox.inTransaction(pool, (tx) => outbox.publish(tx, 'OrderPlaced', ORDER))
    await expect(publishing).rejects.toThrow(UnknownOutcomeError)
    await lost
    expect(await newEvents()).toBe(written)
    await outbox.inTransaction(pool, (tx) => outbox.publish(tx, 'OrderPlaced', ORDER))
    expect(await newEvents()).toBe(written + 1)
    await pool.end()
  })

  test('by a client that waits no longer, neither', async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 1, query_timeout: 3_000 })
    pool.on('error', () => undefined)
    const outbox = outboxOn(pool)
    const locker = await db.pool.connect()
    await locker.query('begin; lock table outbox_event in access exclusive mode')
    const publishing = outbox.inTransaction(pool, (tx) => outbox.publish(tx, 'OrderPlaced', ORDER))
    await expect(publishing).rejects.toThrow(UnknownOutcomeError)
    await locker.query('rollback')
    locker.release()
    await eventually('it was committed all the same', async () => (await newEvents()) === 1)
    await pool.end()
  })
})

test('a client that pipelines by itself gets two statements', async () => {
  const pool = new pg.Pool({ connectionString: db.url, max: 1, pipeline: true })
  const outbox = outboxOn(pool)
  await outbox.inTransaction(pool, (tx) => outbox.publish(tx, 'OrderPlaced', ORDER))
  expect(await newEvents()).toBe(1)
  await pool.end()
})

test('a client that somebody gave another query gets two statements', async () => {
  const pool = new pg.Pool({ connectionString: db.url, max: 1 })
  const outbox = outboxOn(pool)
  const sent: unknown[] = []
  for (const round of [1, 2]) {
    await outbox.inTransaction(pool, async (tx) => {
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      if (round === 2) return
      const query = property(Object.getPrototypeOf(tx), 'query') as (...given: unknown[]) => unknown
      Object.assign(tx, {
        query: (...given: [string]) => {
          sent.push(given[0])
          return Reflect.apply(query, tx, given)
        },
      })
    })
  }
  await pool.end()
  const withCommit = expect.objectContaining({ submit: expect.any(Function) })
  expect(sent).toEqual([withCommit, 'BEGIN', expect.stringMatching(/^call /), 'COMMIT'])
  expect(await newEvents()).toBe(2)
})

test('a client that stands for another gets two statements', async () => {
  const sent: unknown[] = []
  const standIn = (client: pg.PoolClient): pg.PoolClient =>
    new Proxy(client, {
      get: (target, name) => {
        if (name !== 'query') return Reflect.get(target, name, target)
        return (...given: [string]) => {
          sent.push(given[0])
          return target.query(...given)
        }
      },
    })
  const pool = { connect: async () => standIn(await db.pool.connect()) }
  const outbox = outboxOn(db.pool)
  await outbox.inTransaction(pool, (tx) => outbox.publish(tx, 'OrderPlaced', ORDER))
  expect(sent).toEqual(['BEGIN', expect.stringMatching(/^call /), 'COMMIT'])
  expect(await newEvents()).toBe(1)
})
