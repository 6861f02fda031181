import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { NewEvent } from '../../../src/event/event.ts'
import { quoteSchema } from '../../../src/store/postgres/identifiers.ts'
import { insertEvents } from '../../../src/store/postgres/insert-events.ts'
import type { Transaction } from '../../../src/store/transaction.ts'
import {
  column,
  createOutboxDatabase,
  inRolledBack,
  inTransaction,
  newEvent,
  type OutboxDatabase,
  one,
  refusal,
  subscribe,
  wrapped,
} from './fixtures.ts'

let db: OutboxDatabase

beforeEach(async () => {
  db = await createOutboxDatabase()
})
afterEach(async () => {
  await db.drop()
})

const publish = (
  tx: Transaction,
  events: readonly NewEvent[],
  onDuplicate: 'error' | 'ignore' = 'error',
): Promise<{ readonly inserted: number }> => insertEvents(tx, db.quoted, events, { onDuplicate })

const countOf = (table: string): Promise<number> => one(db.pool, `select count(*)::int from ${table}`)

describe('inserting events', () => {
  test('E1 I3 L1 business row and event are committed together, and rolled back together', async () => {
    await db.pool.query('create table account (id int primary key, balance int)')
    const deposit = async (tx: pg.PoolClient): Promise<void> => {
      await tx.query('insert into account values (1, 100)')
      await publish(tx, [newEvent({ aggregateId: 'tenant:1' })])
    }
    await inRolledBack(db, deposit)
    expect([await countOf('account'), await countOf('outbox_event')]).toEqual([0, 0])
    await inTransaction(db, deposit)
    expect([await countOf('account'), await countOf('outbox_event')]).toEqual([1, 1])
  })

  test('large events go in portions, in their order: no text is longer than a client can make or the server read', async () => {
    const payloadJson = JSON.stringify({ filler: 'x'.repeat(1_000_000) })
    const events = Array.from({ length: 40 }, (_, n) => newEvent({ aggregateId: String(n), payloadJson }))
    const lengths: number[] = []
    const { inserted } = await inTransaction(db, (tx) =>
      publish(
        {
          query: (text, values = []) => {
            lengths.push(Math.max(...values.map((value) => String(value).length)))
            return tx.query(text, [...values])
          },
        },
        events,
        'ignore',
      ),
    )
    expect(inserted).toBe(40)
    expect(lengths.length).toBe(2)
    expect(Math.max(...lengths)).toBeLessThan(34 * 1_024 ** 2)
    expect(await column(db.pool, 'select aggregate_id from outbox_event order by id')).toEqual(
      events.map(({ aggregateId }) => aggregateId),
    )
  })

  test('L4 a transaction that is rolled back and run again leaves one event', async () => {
    const event = newEvent()
    await inRolledBack(db, (tx) => publish(tx, [event]))
    await inTransaction(db, (tx) => publish(tx, [event]))
    expect(await column(db.pool, 'select event_id from outbox_event')).toEqual([event.eventId])
  })

  test.each([
    ['alone', []],
    ['with others', [newEvent({ sequenced: true }), newEvent({ orderingKey: '' })]],
  ])('every field arrives as it was given, %s', async (_, others) => {
    const occurredAt = new Date('2026-02-03T04:05:06.789Z')
    const event = newEvent({
      stream: 'shop.order',
      type: '주문접수',
      schemaVersion: 7,
      aggregateType: 'order',
      aggregateId: "o'1\\",
      orderingKey: 'k',
      payloadJson: '{"n":12345678901234567890.10,"s":"\\ud83d\\ude00 \\" \\\\ {schema}","a":[null,true]}',
      headers: { traceparent: '00-1', ['__proto__']: 'x' },
      occurredAt,
    })
    await inTransaction(db, (tx) => publish(tx, [...others, event]))
    const { rows } = await db.pool.query(
      `select event_id, stream, event_type, schema_version, aggregate_type, aggregate_id, ordering_key, sequence,
              payload::text, headers, occurred_at from outbox_event where event_id = $1`,
      [event.eventId],
    )
    expect(rows).toEqual([
      {
        event_id: event.eventId,
        stream: 'shop.order',
        event_type: '주문접수',
        schema_version: 7,
        aggregate_type: 'order',
        aggregate_id: "o'1\\",
        ordering_key: 'k',
        sequence: null,
        payload: '{"a": [null, true], "n": 12345678901234567890.10, "s": "😀 \\" \\\\ {schema}"}',
        headers: event.headers,
        occurred_at: occurredAt,
      },
    ])
  })

  test.each(['null', '0', '"text"', '[]', 'false'])('a payload may be %s', async (payloadJson) => {
    await inTransaction(db, (tx) => publish(tx, [newEvent({ payloadJson })]))
    expect(await one(db.pool, 'select payload::text from outbox_event')).toBe(payloadJson)
  })

  test('without a time of its own an event occurred now, by the clock of the database', async () => {
    await inTransaction(db, async (tx) => {
      await tx.query('select pg_sleep(0.02)')
      await publish(tx, [newEvent()])
      expect(await one(tx, 'select occurred_at > now() + interval $$15 ms$$ from outbox_event')).toBe(true)
    })
  })

  test('positions follow the given order', async () => {
    const events = Array.from({ length: 300 }, (_, n) => newEvent({ aggregateId: String(n * 7919) }))
    const result = await inTransaction(db, (tx) => publish(tx, events))
    expect(result).toEqual({ inserted: 300 })
    const ids = events.map(({ eventId }) => eventId)
    expect(await column(db.pool, 'select event_id from outbox_event order by id')).toEqual(ids)
  })

  test('a text that holds what divides the values of a batch moves none of them to another event', async () => {
    const texts = [{ aggregateId: 'a\u001fb' }, { aggregateId: 'a\u001fb', orderingKey: 'c\u001f=d' }]
    for (const text of texts) {
      const events = [newEvent(text), newEvent(), newEvent({ orderingKey: 'e' })]
      expect(await refusal(inTransaction(db, (tx) => publish(tx, events)))).toBe('23502')
    }
    expect(await countOf('outbox_event')).toBe(0)
  })

  test('no event is no statement', async () => {
    const tx: Transaction = { query: () => Promise.reject(new Error('not to be called')) }
    expect(await publish(tx, [])).toEqual({ inserted: 0 })
  })

  test('all parameters are text, so that any client can send them', async () => {
    const given: unknown[] = []
    await inTransaction(db, async (client) => {
      const tx: Transaction = {
        query: (text, params = []) => {
          given.push(...params)
          return client.query(text, [...params])
        },
      }
      await publish(tx, [newEvent({ sequenced: true }), newEvent()])
    })
    expect(new Set(given.map((param) => typeof param))).toEqual(new Set(['string']))
  })

  test('tables that are not there are named with the remedy', async () => {
    const insert = inRolledBack(db, (tx) =>
      insertEvents(tx, quoteSchema('nowhere'), [newEvent()], { onDuplicate: 'error' }),
    )
    await expect(insert).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
      message: expect.stringContaining('commitpost migrate up'),
    })
  })
})

describe('E5 duplicates', () => {
  test.each([
    ['a pg client', (client: pg.PoolClient): Transaction => client],
    ['a client that wraps errors', wrapped],
  ])('E5 an id that exists is refused and named: %s', async (_, wrap) => {
    const known = newEvent()
    await inTransaction(db, (tx) => publish(tx, [known]))
    await inRolledBack(db, async (client) => {
      await expect(publish(wrap(client), [newEvent(), known, newEvent()])).rejects.toMatchObject({
        code: 'DUPLICATE_EVENT',
        eventIds: [known.eventId],
        message: expect.stringMatching(/transaction/),
      })
      expect(await refusal(client.query('select 1'))).toBe('25P02')
    })
    expect(await countOf('outbox_event')).toBe(1)
  })

  test('E5 with "ignore" the rest of the batch is written, and counted', async () => {
    await subscribe(db)
    const known = newEvent({ payloadJson: '{"first":true}' })
    await inTransaction(db, (tx) => publish(tx, [known]))
    const again = { ...known, payloadJson: '{"second":true}' }
    const result = await inTransaction(db, (tx) => publish(tx, [again, newEvent(), again], 'ignore'))
    expect(result).toEqual({ inserted: 1 })
    expect(await countOf('outbox_event')).toBe(2)
    expect(await countOf('outbox_delivery')).toBe(2)
    expect(await one(db.pool, 'select payload from outbox_event order by id limit 1')).toEqual({
      first: true,
    })
  })

  test('a unique index of the user is not mistaken for a duplicate event', async () => {
    await db.pool.query('create unique index one_per_aggregate on outbox_event (aggregate_id)')
    const twice = inRolledBack(db, (tx) => publish(tx, [newEvent(), newEvent()]))
    await expect(twice).rejects.toMatchObject({ code: '23505', constraint: 'one_per_aggregate' })
  })
})

describe('the transaction', () => {
  test.each(['repeatable read', 'serializable'])(
    'a %s publisher older than a registration gets 40001, untouched',
    async (level) => {
      const stale = inTransaction(
        db,
        async (tx) => {
          await tx.query('select 1')
          await subscribe(db)
          await db.pool.query(`select setval('outbox_registry_xid', pg_current_xact_id()::text::bigint)`)
          await publish(tx, [newEvent()])
        },
        `begin isolation level ${level}`,
      )
      await expect(stale).rejects.toMatchObject({ code: '40001', hint: 'Retry the transaction.' })
      await inTransaction(db, (tx) => publish(tx, [newEvent()]), `begin isolation level ${level}`)
      expect(await countOf('outbox_delivery')).toBe(1)
    },
  )

  test.each(['read committed', 'read uncommitted'])(
    'a %s publisher sees a registration that committed while it ran',
    async (level) => {
      const publishing = async (tx: pg.PoolClient): Promise<void> => {
        await tx.query('select 1')
        await subscribe(db)
        await db.pool.query(`select setval('outbox_registry_xid', pg_current_xact_id()::text::bigint)`)
        await publish(tx, [newEvent()])
      }
      await inTransaction(db, publishing, `begin isolation level ${level}`)
      expect(await countOf('outbox_delivery')).toBe(1)
    },
  )

  test('synchronous_commit = off is raised for a transaction that publishes, and for no other', async () => {
    const setting = `select current_setting('synchronous_commit')`
    const client = await db.pool.connect()
    try {
      await client.query('set synchronous_commit = off')
      await client.query('begin')
      await client.query('savepoint a')
      await publish(client, [newEvent()])
      expect(await one(client, setting)).toBe('on')
      await client.query('rollback to savepoint a')
      expect(await one(client, setting)).toBe('off')
      await publish(client, [newEvent()])
      expect(await one(client, setting)).toBe('on')
      await client.query('commit')
      expect(await one(client, setting)).toBe('off')
      await client.query('set synchronous_commit = local; begin')
      await publish(client, [newEvent()])
      expect(await one(client, setting)).toBe('local')
      await client.query('rollback')
    } finally {
      client.release(true)
    }
  })

  test('an event of a savepoint that was rolled back never was; the others carry the id of the whole transaction', async () => {
    await subscribe(db)
    const [kept, undone, last] = [newEvent(), newEvent(), newEvent()]
    await inTransaction(db, async (tx) => {
      const xid = await one(tx, 'select pg_current_xact_id()::text')
      await publish(tx, [kept])
      await tx.query('savepoint a')
      await publish(tx, [undone])
      await tx.query('rollback to savepoint a')
      await tx.query('savepoint b')
      await publish(tx, [last])
      await tx.query('release savepoint b')
      expect(await column(tx, 'select distinct xid::text from outbox_event')).toEqual([xid])
    })
    const ids = [kept.eventId, last.eventId]
    expect(await column(db.pool, 'select event_id from outbox_event order by id')).toEqual(ids)
    expect(await column(db.pool, 'select event_id from outbox_delivery order by id')).toEqual(ids)
  })
})
