import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { insertEvents } from '../../../src/store/postgres/insert-events.ts'
import { takeUnmatched } from '../../../src/store/postgres/take-unmatched.ts'
import { copyIn } from './copy-in.ts'
import {
  column,
  createOutboxDatabase,
  insertEvent,
  inTransaction,
  newEvent,
  type OutboxDatabase,
  one,
  subscribe,
} from './fixtures.ts'

let db: OutboxDatabase

beforeEach(async () => {
  db = await createOutboxDatabase()
})
afterEach(async () => {
  await db.drop()
})

const COLUMNS = 'event_id, stream, event_type, aggregate_type, aggregate_id, payload'
const row = (id: string): string => `('${id}', 'shop.order', 'OrderPlaced', 'order', '1', '{}')`

/** Every way in which SQL can put rows into a table. Each is given ids of which the first exists already. */
const WAYS: Readonly<
  Record<string, (client: pg.PoolClient, known: string, fresh: string[]) => Promise<unknown>>
> = {
  'one INSERT each': async (client, _, fresh) => {
    for (const id of fresh) await client.query(`insert into outbox_event (${COLUMNS}) values ${row(id)}`)
  },
  'a multi-row INSERT': (client, _, fresh) =>
    client.query(`insert into outbox_event (${COLUMNS}) values ${fresh.map(row).join(', ')}`),
  'an INSERT from a SELECT': (client, _, fresh) =>
    client.query(
      `insert into outbox_event (${COLUMNS}) select id, 'shop.order', 'OrderPlaced', 'order', '1', '{}' from unnest($1::uuid[]) id`,
      [fresh],
    ),
  'ON CONFLICT DO NOTHING': (client, known, fresh) =>
    client.query(
      `insert into outbox_event (${COLUMNS}) values ${[known, ...fresh].map(row).join(', ')} on conflict do nothing`,
    ),
  COPY: (client, _, fresh) =>
    copyIn(
      client,
      `copy outbox_event (${COLUMNS}) from stdin`,
      fresh.map((id) => `${id}\tshop.order\tOrderPlaced\torder\t1\t{}\n`).join(''),
    ),
  'a WITH query': (client, _, fresh) =>
    client.query(
      `with e as (insert into outbox_event (${COLUMNS}) values ${fresh.map(row).join(', ')}) select 1`,
    ),
  MERGE: async (client, known, fresh) => {
    if ((await one<number>(client, `select current_setting('server_version_num')::int`)) < 150000)
      return WAYS['a multi-row INSERT']?.(client, known, fresh)
    return client.query(
      `merge into outbox_event e using (values ${[known, ...fresh].map(row).join(', ')}) as n(${COLUMNS})
          on e.event_id = n.event_id::uuid
        when not matched then insert (${COLUMNS})
             values (n.event_id::uuid, n.stream, n.event_type, n.aggregate_type, n.aggregate_id, n.payload::jsonb)`,
    )
  },
}

describe('fan-out', () => {
  test.each(Object.keys(WAYS))(
    'U2 an event gets one delivery for each subscription, however it is inserted: %s',
    async (way) => {
      await subscribe(db, { name: 'a' })
      await subscribe(db, { name: 'b', orderBy: 'aggregate' })
      const known = await insertEvent(db.pool)
      const fresh = [randomUUID(), randomUUID(), randomUUID()]
      await inTransaction(db, async (client) => await WAYS[way]?.(client, known, fresh))
      const { rows } = await db.pool.query(
        `select s.name, array_agg(d.event_id::text) as ids from outbox_delivery d
           join outbox_subscription s on s.id = d.subscription_id join outbox_event e on (e.event_id, e.id) = (d.event_id, d.id)
          group by s.name order by s.name`,
      )
      expect(rows.map(({ name }) => name)).toEqual(['a', 'b'])
      for (const { ids } of rows) expect(ids.toSorted()).toEqual([known, ...fresh].toSorted())
    },
  )

  test.each([
    [{ streamLike: null, eventTypes: null }, true],
    [{ streamLike: ['shop.order'] }, true],
    [{ streamLike: ['shop.%'] }, true],
    [{ streamLike: ['other', 'shop.%'] }, true],
    [{ streamLike: ['other.%'] }, false],
    [{ streamLike: [] }, false],
    [{ eventTypes: ['OrderPlaced'] }, true],
    [{ eventTypes: ['OrderCancelled'] }, false],
    [{ streamLike: ['shop.%'], eventTypes: ['OrderCancelled'] }, false],
    [{ streamLike: ['other'], eventTypes: ['OrderPlaced'] }, false],
    [{ state: 'joining' as const }, true],
    [{ state: 'retired' as const }, false],
  ])('a subscription to %j takes shop.order/OrderPlaced: %s', async (options, taken) => {
    await subscribe(db, options)
    await insertEvent(db.pool)
    expect(await one(db.pool, 'select count(*)::int from outbox_delivery')).toBe(taken ? 1 : 0)
  })

  test.each([
    ['stream', 1_000],
    ['type', 1_000],
    ['aggregateId', 1_020],
    ['orderingKey', 2_030],
  ])('an event whose %s has %i bytes is as good as any, and none may have more', async (name, longest) => {
    await subscribe(db)
    await insertEvent(db.pool, { [name]: 'x'.repeat(longest) })
    expect(await one(db.pool, 'select count(*)::int from outbox_delivery')).toBe(1)
    await expect(insertEvent(db.pool, { [name]: 'x'.repeat(longest + 1) })).rejects.toThrow(
      'cannot have this',
    )
  })

  test('a delivery starts PENDING, with the key and lane its order asks for', async () => {
    for (const orderBy of ['none', 'aggregate', 'total'] as const)
      await subscribe(db, { name: orderBy, orderBy })
    await insertEvent(db.pool, { aggregateId: '7' })
    await insertEvent(db.pool, { aggregateId: '7', orderingKey: 'account-1' })
    const { rows } = await db.pool.query(
      `select s.name, d.ordering_key as key, d.lane, d.status, d.attempt_count, d.max_attempts, d.held
         from outbox_delivery d join outbox_subscription s on s.id = d.subscription_id order by s.id, d.id`,
    )
    const fresh = { status: 'PENDING', attempt_count: 0, max_attempts: 3, held: false }
    const lane = (key: string): Promise<number> =>
      one(db.pool, 'select outbox_lane_of($1, 4::smallint)', [key])
    expect(rows).toEqual([
      { name: 'none', key: null, lane: 0, ...fresh },
      { name: 'none', key: null, lane: 0, ...fresh },
      { name: 'aggregate', key: 'order:7', lane: await lane('order:7'), ...fresh },
      { name: 'aggregate', key: 'account-1', lane: await lane('account-1'), ...fresh },
      { name: 'total', key: '', lane: await lane(''), ...fresh },
      { name: 'total', key: '', lane: await lane(''), ...fresh },
    ])
  })

  test('a key keeps its lane for ever: the lanes of some keys, written down', async () => {
    const lanes = ['', 'order:1', 'order:2', '주문:1'].map((key) =>
      one(db.pool, 'select outbox_lane_of($1, 64::smallint)', [key]),
    )
    expect(await Promise.all(lanes)).toMatchInlineSnapshot(`
      [
        25,
        63,
        48,
        52,
      ]
    `)
    const used = `select count(distinct outbox_lane_of('order:' || n, 64::smallint))::int from generate_series(1, 2000) n`
    expect(await one(db.pool, used)).toBe(64)
  })
})

describe('E5 the event id', () => {
  test('E5 made by the database is a UUID v7 of this moment, and unique', async () => {
    await db.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       select 's', 't', 'a', n::text, '{}' from generate_series(1, 500) n`,
    )
    const ids = await column<string>(db.pool, 'select event_id::text from outbox_event order by id')
    expect(new Set(ids).size).toBe(500)
    const now = Number(await one(db.pool, `select extract(epoch from clock_timestamp()) * 1000`))
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(Math.abs(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) - now)).toBeLessThan(60_000)
    }
  })
})

describe('D4 events that no subscription takes', () => {
  const unmatched = (): Promise<string[]> =>
    column(db.pool, 'select event_id::text from outbox_unmatched order by event_id')

  test('D4 exactly those of a mixed batch are noted', async () => {
    await subscribe(db, { name: 'orders', eventTypes: ['OrderPlaced'] })
    await subscribe(db, { name: 'gone', state: 'retired' })
    const types = ['OrderPlaced', 'OrderLost', 'OrderPlaced', 'OrderForgotten']
    const events = types.map((type) => newEvent({ type }))
    await inTransaction(db, (tx) => insertEvents(tx, db.quoted, events, { onDuplicate: 'error' }))
    const lost = events.filter(({ type }) => type !== 'OrderPlaced').map(({ eventId }) => eventId)
    expect(await unmatched()).toEqual(lost.toSorted())
  })

  test('D4 a single one, and a batch of nothing else, are noted too', async () => {
    await subscribe(db, { streamLike: ['other'] })
    const single = await insertEvent(db.pool)
    const events = [newEvent(), newEvent()]
    await inTransaction(db, (tx) => insertEvents(tx, db.quoted, events, { onDuplicate: 'error' }))
    expect(await unmatched()).toEqual([single, ...events.map(({ eventId }) => eventId)].toSorted())
  })

  test('D4 none is noted while nobody listens at all, nor when all are taken', async () => {
    await insertEvent(db.pool)
    await subscribe(db)
    await insertEvent(db.pool)
    const events = [newEvent(), newEvent()]
    await inTransaction(db, (tx) => insertEvents(tx, db.quoted, events, { onDuplicate: 'error' }))
    expect(await unmatched()).toEqual([])
  })

  test('D4 each is reported once, to one of the workers that ask, oldest first', async () => {
    await subscribe(db, { streamLike: ['other'] })
    const ids: string[] = []
    for (let n = 0; n < 30; n += 1) ids.push(await insertEvent(db.pool, { type: `T${n}` }))
    const [first] = await takeUnmatched(db.pool, db.quoted, 1, false)
    expect(first).toMatchObject({ eventId: ids[0], stream: 'shop.order', type: 'T0' })
    const rest = await Promise.all(
      Array.from({ length: 6 }, () => takeUnmatched(db.pool, db.quoted, 10, false)),
    )
    expect(
      rest
        .flat()
        .map(({ eventId }) => eventId)
        .toSorted(),
    ).toEqual(ids.slice(1).toSorted())
    expect(await takeUnmatched(db.pool, db.quoted, 10, false)).toEqual([])
    expect(await one(db.pool, 'select count(*)::int from outbox_dead_letter')).toBe(0)
  })

  test('D4 by choice each becomes a dead letter with a clear reason', async () => {
    await subscribe(db, { streamLike: ['other'] })
    const eventId = await insertEvent(db.pool)
    expect(await takeUnmatched(db.pool, db.quoted, 10, true)).toHaveLength(1)
    const { rows } = await db.pool.query(
      'select subscription, event_id, error_code, error_message, retry_count, payload, resolved from outbox_dead_letter',
    )
    expect(rows).toEqual([
      {
        subscription: '(none)',
        event_id: eventId,
        error_code: 'NO_SUBSCRIPTION',
        error_message: 'No subscription takes events of type OrderPlaced on stream shop.order.',
        retry_count: 0,
        payload: { total: 1 },
        resolved: false,
      },
    ])
  })
})
