import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOutbox } from '../../src/index.ts'
import { commitAtEndOf } from '../../src/publish/commit.ts'
import { commitWith } from '../../src/store/postgres/commit-with.ts'
import { quoteSchema } from '../../src/store/postgres/identifiers.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { wakeChannel } from '../../src/store/postgres/wake-channel.ts'
import { openTail } from '../../src/store/transaction-tail.ts'
import { createOutboxDatabase, type OutboxDatabase, one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { events, roundTrips } from './support.ts'

const ORDER = { aggregateId: 'o-1', payload: { total: 1 } }
const REFUSED_LATE = { ...ORDER, aggregateId: 'refused late' }

let db: OutboxDatabase
beforeAll(async () => {
  db = await createOutboxDatabase()
  await db.pool.query('create table account (id int primary key, balance int not null)')
  await db.pool.query('create table child (id int references account (id) deferrable initially deferred)')
})
afterAll(() => db.drop())
beforeAll(async () => {
  await db.pool.query(`
    create function refuse() returns trigger language plpgsql as
      $$ begin raise restrict_violation; end $$;
    create constraint trigger refuse_late after insert on outbox_event deferrable initially deferred
      for each row when (new.aggregate_id = 'refused late') execute function refuse()`)
})

const outboxOn = (schema = db.schema) =>
  createOutbox({ store: postgresStore({ pool: db.pool, schema }), events })
const eventCount = (): Promise<number> => one(db.pool, 'select count(*)::int from outbox_event')

describe('workers of other processes', () => {
  /** Runs it, and returns how often somebody who listens heard of it before a word of the test's own. */
  async function heardOf(work: () => Promise<unknown>): Promise<number> {
    const channel = wakeChannel(quoteSchema(db.schema))
    const listener = await db.pool.connect()
    let heard = 0
    const over = new Promise<void>((resolve) => {
      listener.on('notification', ({ payload }) => {
        if (payload === 'over') resolve()
        else heard += 1
      })
    })
    await listener.query(`listen ${channel}`)
    await work()
    await db.pool.query(`select pg_notify('${channel}', 'over')`)
    await over
    listener.release(true)
    return heard
  }

  test.each([
    ['with BEGIN and an event, and nothing else', 1, ['publish']],
    ['with an event that goes with COMMIT', 2, ['update', 'publish']],
    ['with an event before something else', 3, ['publish', 'update']],
  ])('are told in the same write as COMMIT: %s', async (_what, answersNeeded, steps) => {
    const outbox = outboxOn(db.schema)
    const before = await eventCount()
    // A client of its own: nothing else is answered on it.
    const pool = new pg.Pool({ connectionString: db.url, max: 1 })
    let answers = (): number => 0
    const heard = await heardOf(async () => {
      await outbox.inTransaction(pool, async (tx) => {
        answers = roundTrips(tx)
        for (const step of steps) {
          if (step === 'publish') await outbox.publish(tx, 'OrderPlaced', ORDER)
          else await tx.query('update account set balance = balance + 1 where id = $1', [1])
        }
      })
      await eventually('the server is done with it', () => answers() >= answersNeeded)
    })
    await pool.end()
    expect(heard).toBe(1)
    expect(answers()).toBe(answersNeeded)
    expect(await eventCount()).toBe(before + 1)
  })

  test.each([
    ['the event', 'not_there', 'SCHEMA_MISSING', 'select 1', ORDER],
    ['an event that goes with BEGIN', 'not_there', 'SCHEMA_MISSING', null, ORDER],
    ['COMMIT', undefined, '23503', 'insert into child values (999)', ORDER],
    ['COMMIT in one write with BEGIN', undefined, '23001', null, REFUSED_LATE],
  ])('are not told where the server refuses %s', async (_what, schema, code, statement, event) => {
    const outbox = outboxOn(schema)
    const before = await eventCount()
    const pool = new pg.Pool({ connectionString: db.url, max: 1 })
    const heard = await heardOf(async () => {
      const refused = outbox.inTransaction(pool, async (tx) => {
        if (statement !== null) await tx.query(statement)
        await outbox.publish(tx, 'OrderPlaced', event)
      })
      await expect(refused).rejects.toMatchObject({ code })
    })
    expect(heard).toBe(0)
    expect(await eventCount()).toBe(before)
    // The client is as good as new: a transaction that was left open on it would take this along.
    await outboxOn().inTransaction(pool, (tx) => outboxOn().publish(tx, 'OrderPlaced', ORDER))
    expect(await eventCount()).toBe(before + 1)
    await pool.end()
  })

  test('are not told, nor is anything written, where the server refuses BEGIN', async () => {
    const outbox = outboxOn()
    const before = await eventCount()
    const tx = await db.pool.connect()
    const send = commitWith(tx, `notify ${wakeChannel(quoteSchema(db.schema))}`)
    const answers = roundTrips(tx)
    const heard = await heardOf(async () => {
      const tail = openTail(tx, { text: 'BEGIN NONSENSE', beginWith: null })
      if (tail === null || send === null) throw new Error('a client of pg sends in one write')
      await outbox.publish(tx, 'OrderPlaced', ORDER)
      const refused = commitAtEndOf({ tail, send, mayTell: () => true }, tx)
      await expect(refused).rejects.toMatchObject({ code: '42601' })
    })
    tx.release()
    expect(heard).toBe(0)
    expect(answers()).toBe(1)
    expect(await eventCount()).toBe(before)
  })

  test('are not told of a transaction that sends nothing', async () => {
    expect(await heardOf(() => outboxOn().inTransaction(db.pool, async () => undefined))).toBe(0)
  })

  test('and a notification that has to wait, or fails, keep nobody who has committed', async () => {
    interface Exchange {
      submit(connection: object): void
      callback(error: unknown): void
      handleCommandComplete(message: { readonly text: string }): void
      handleError(error: unknown): void
      handleReadyForQuery(): void
    }
    const exchanges: Exchange[] = []
    const messages = ['parse', 'bind', 'execute', 'flush', 'sync']
    const client = {
      connection: { stream: {}, ...Object.fromEntries(messages.map((name) => [name, () => undefined])) },
      query: (exchange: Exchange) => exchanges.push(exchange),
    }
    const send = commitWith(client, 'notify somebody')
    const ends: ((exchange: Exchange) => void)[] = [
      (exchange) => exchange.handleReadyForQuery(),
      (exchange) => exchange.handleError(new Error('queue is full')),
      (exchange) => exchange.callback(new Error('time-out')),
    ]
    const results = ends.map(async (end, index) => {
      const answering = send?.({ begin: null, last: null, tells: true })
      exchanges[index]?.submit(client.connection)
      exchanges[index]?.handleCommandComplete({ text: 'COMMIT' })
      const answer = await answering
      end(exchanges[index] as Exchange)
      if (answer?.outcome !== 'answered') return answer
      return [answer.command, await answer.telling?.then(String, String)]
    })
    expect(await Promise.all(results)).toEqual([
      ['COMMIT', 'undefined'],
      ['COMMIT', 'Error: queue is full'],
      ['COMMIT', 'Error: time-out'],
    ])
  })
})
