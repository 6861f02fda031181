import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { insertEvents } from '../../../src/store/postgres/insert-events.ts'
import { eventually } from '../../support/program.ts'
import {
  column,
  createOutboxDatabase,
  inRolledBack,
  insertEvent,
  inTransaction,
  newEvent,
  type OutboxDatabase,
  one,
  refusal,
} from './fixtures.ts'

let db: OutboxDatabase

beforeEach(async () => {
  db = await createOutboxDatabase({ connections: 12 })
})
afterEach(async () => {
  await db.drop()
})

const numbers = (key = 'order:1'): Promise<number[]> =>
  column(
    db.pool,
    `select sequence::int from outbox_event
      where coalesce(ordering_key, aggregate_type || ':' || aggregate_id) = $1 and sequence is not null order by id`,
    [key],
  )

const oneTo = (n: number): number[] => Array.from({ length: n }, (_, index) => index + 1)

/** Two connections of their own, for steps in a chosen order. */
async function twoClients(work: (a: pg.PoolClient, b: pg.PoolClient) => Promise<void>): Promise<void> {
  const [a, b] = [await db.pool.connect(), await db.pool.connect()]
  try {
    await work(a, b)
  } finally {
    for (const client of [a, b]) {
      await client.query('rollback')
      client.release()
    }
  }
}

const waitsForLock = (client: pg.PoolClient): Promise<void> =>
  eventually('the other connection waits for a lock', () =>
    one<boolean>(db.pool, `select wait_event_type = 'Lock' from pg_stat_activity where pid = $1`, [
      (client as unknown as { processID: number }).processID,
    ]),
  )

describe('L9 numbers within an ordering key', () => {
  test('L9 count 1, 2, 3 … per key; the key is the aggregate unless another is given', async () => {
    await insertEvent(db.pool, { aggregateId: '1', sequenced: true })
    await insertEvent(db.pool, { aggregateId: '2', sequenced: true })
    await insertEvent(db.pool, { aggregateId: '1' })
    await insertEvent(db.pool, { aggregateId: '1', sequenced: true })
    await insertEvent(db.pool, { aggregateId: '1', orderingKey: 'account-9', sequenced: true })
    await insertEvent(db.pool, { aggregateId: '3', orderingKey: 'account-9', sequenced: true })
    expect(await numbers('order:1')).toEqual([1, 2])
    expect(await numbers('order:2')).toEqual([1])
    expect(await numbers('account-9')).toEqual([1, 2])
  })

  test('L9 have no gap and no repetition under concurrency, rollbacks and rolled-back savepoints', async () => {
    const keys = ['order:1', 'order:2', 'order:3']
    const committed = { 'order:1': 0, 'order:2': 0, 'order:3': 0 } as Record<string, number>
    const publisher = async (seed: number): Promise<void> => {
      for (let n = 0; n < 25; n += 1) {
        const key = keys[(seed + n) % keys.length] as string
        const roll = (seed * 31 + n * 17) % 10
        const client = await db.pool.connect()
        await client.query('begin')
        const event = { aggregateId: key.slice(6), sequenced: true }
        await insertEvent(client, event)
        await client.query('savepoint a')
        await insertEvent(client, event)
        if (roll < 4) await client.query('rollback to savepoint a')
        const commits = roll !== 9
        await client.query(commits ? 'commit' : 'rollback')
        client.release()
        if (commits) committed[key] = (committed[key] ?? 0) + (roll < 4 ? 1 : 2)
      }
    }
    await Promise.all(Array.from({ length: 8 }, (_, seed) => publisher(seed)))
    for (const key of keys) expect(await numbers(key)).toEqual(oneTo(committed[key] as number))
  })

  test('L9 are not used up by an event that exists already', async () => {
    const event = newEvent({ sequenced: true })
    const publish = (): Promise<unknown> =>
      inTransaction(db, (tx) => insertEvents(tx, db.quoted, [event, event], { onDuplicate: 'ignore' }))
    await Promise.all([publish(), publish(), publish()])
    await insertEvent(db.pool, { aggregateId: '1', sequenced: true })
    expect(await numbers()).toEqual([1, 2])
    await refusal(insertEvent(db.pool, { eventId: event.eventId, aggregateId: '1', sequenced: true }))
    await insertEvent(db.pool, { aggregateId: '1', sequenced: true })
    expect(await numbers()).toEqual([1, 2, 3])
  })

  test('L9 within a batch follow the given order', async () => {
    const events = Array.from({ length: 20 }, (_, n) =>
      newEvent({ aggregateId: String(n % 3), payloadJson: String(n), sequenced: n % 4 !== 0 }),
    )
    await inTransaction(db, (tx) => insertEvents(tx, db.quoted, events, { onDuplicate: 'error' }))
    for (const aggregateId of ['0', '1', '2']) {
      const given = events
        .filter((event) => event.aggregateId === aggregateId)
        .map((event) => Number(event.payloadJson))
      const stored = `select payload::int from outbox_event where aggregate_id = $1 order by id`
      expect(await column(db.pool, stored, [aggregateId])).toEqual(given)
      const numbered = await numbers(`order:${aggregateId}`)
      expect(numbered).toEqual(oneTo(numbered.length))
    }
  })
})

describe('position order is commit order within a numbered key', () => {
  /** B begins to publish while A holds the key; A publishes again and commits; then B commits. */
  const interleave = async (): Promise<void> =>
    twoClients(async (a, b) => {
      await a.query('begin')
      await b.query('begin')
      await insertEvent(a, { stream: 'a', sequenced: true })
      const waiting = insertEvent(b, { stream: 'b', sequenced: true })
      await waitsForLock(b)
      await insertEvent(a, { stream: 'a', sequenced: true })
      await a.query('commit')
      await waiting
      await b.query('commit')
    })

  test('L9 whoever commits later has the later position', async () => {
    await interleave()
    expect(await column(db.pool, 'select stream from outbox_event order by id')).toEqual(['a', 'a', 'b'])
    expect(await numbers()).toEqual([1, 2, 3])
  })

  test('the hazard: a position taken before the key is locked puts the later commit between the earlier ones', async () => {
    await db.pool.query(
      `create or replace function outbox_number() returns trigger language plpgsql as $$
       begin
         insert into outbox_sequence as q (ordering_key, last) values (new.aggregate_type || ':' || new.aggregate_id, 1)
           on conflict (ordering_key) do update set last = q.last + 1 returning q.last into new.sequence;
         return new;
       end $$`,
    )
    await interleave()
    expect(await column(db.pool, 'select stream from outbox_event order by id')).toEqual(['a', 'b', 'a'])
  })

  test('other keys and events without a number never wait', async () => {
    await twoClients(async (a, b) => {
      await a.query('begin')
      await insertEvent(a, { aggregateId: '1', sequenced: true })
      await b.query(`set lock_timeout = '1s'`)
      await insertEvent(b, { aggregateId: '2', sequenced: true })
      await insertEvent(b, { aggregateId: '1' })
      expect(await refusal(insertEvent(b, { aggregateId: '1', sequenced: true }))).toBe('55P03')
      await b.query('reset lock_timeout')
    })
  })
})

describe('two batches over the same keys', () => {
  const there = ['1', '2', '3'].map((aggregateId) => ({ aggregateId, sequenced: true }))
  const back = there.toReversed()

  test('in opposite order do not wait for each other: keys are locked in one order', async () => {
    for (let round = 0; round < 20; round += 1) {
      const batches = [there, back, there, back].map((batch) =>
        inTransaction(db, async (tx) => {
          await insertEvents(tx, db.quoted, batch.map(newEvent), { onDuplicate: 'error' })
          await sleep(1)
        }),
      )
      await Promise.all(batches)
    }
    for (const key of ['order:1', 'order:2', 'order:3']) expect(await numbers(key)).toEqual(oneTo(80))
  })

  test('the hazard: locked as they come, they deadlock', async () => {
    await twoClients(async (a, b) => {
      await a.query('begin')
      await b.query('begin')
      await insertEvent(a, { aggregateId: '1', sequenced: true })
      await insertEvent(b, { aggregateId: '2', sequenced: true })
      const publishThenEnd = async (client: pg.PoolClient, aggregateId: string): Promise<string | null> => {
        const refused = await refusal(insertEvent(client, { aggregateId, sequenced: true }))
        await client.query('rollback')
        return refused
      }
      const refused = await Promise.all([publishThenEnd(a, '2'), publishThenEnd(b, '1')])
      expect(new Set(refused)).toEqual(new Set(['40P01', null]))
    })
  })

  test('twenty thousand keys in one transaction do not exhaust the lock table', async () => {
    const events = Array.from({ length: 20_000 }, (_, n) =>
      newEvent({ aggregateId: String(n), sequenced: true }),
    )
    const { inserted } = await inRolledBack(db, (tx) =>
      insertEvents(tx, db.quoted, events, { onDuplicate: 'error' }),
    )
    expect(inserted).toBe(20_000)
  })
})
