import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../../src/delivery/delivery.ts'
import { explain, tablesRead } from '../../hazards/plan.ts'
import { hazard } from '../../hazards/support.ts'
import { claim, claimLanes, join, takeLanes } from '../contract/helpers.ts'
import { partitionInThePast, partitions, publishedOn } from './partition-fixtures.ts'

const MANY = 1_000
const EVENTS = 12

const publishSql = `
  insert into outbox_event (stream, event_type, schema_version, aggregate_type, aggregate_id, ordering_key, payload, headers)
  select 's', 't', n, 'order', 'a' || n, case when n % 2 = 0 then 'key ' || n end,
         jsonb_build_object('n', n, 'text', E'\\u001e \\uC548\\uB155'), jsonb_build_object('h', n::text)
    from generate_series(1, ${EVENTS}) n`

/** What was claimed, without what differs between two subscriptions. */
const contents = (deliveries: readonly ClaimedDelivery[]): readonly unknown[] =>
  deliveries.map(({ position, attempt, maxAttempts, event }) => ({ position, attempt, maxAttempts, event }))

describe('a claim of many', () => {
  test('brings what a claim of few brings, in position order and under one lease', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const few = await join(store, { name: 'few' })
    const many = await join(store, { name: 'many' })
    await h.db.pool.query(publishSql)
    const one = await claim(store, few, 'w', MANY / 10)
    const other = await claim(store, many, 'w', MANY)
    expect(contents(one)).toHaveLength(EVENTS)
    expect(contents(other)).toEqual(contents(one))
    expect(new Set(other.map(({ lease }) => lease)).size).toBe(1)
    expect(await claim(store, many, 'w', MANY)).toEqual([])
  })

  test('gives each delivery of a lane its own event and key', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store, { orderBy: 'aggregate', lanes: 4 })
    const lanes = await takeLanes(store, sub, 'w')
    await h.db.pool.query(publishSql)
    const claims = []
    do claims.push(await claimLanes(store, sub, 'w', lanes, 2))
    while (claims.at(-1)?.length !== 0)
    const taken = claims.flat()
    expect(taken).toHaveLength(EVENTS)
    for (const { key, position, event } of taken) {
      expect([key, position]).toEqual([event.orderingKey, event.position])
      expect(event.payload).toMatchObject({ n: event.schemaVersion })
    }
  })

  test('leaves out a delivery whose event is not there', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store)
    await h.db.pool.query(publishSql)
    const client = await h.connect('remover')
    await client.query(`begin; set local commitpost.retaining = 'on'`)
    await client.query(`delete from outbox_event where schema_version = 3`)
    await client.query('commit')
    const versions = (await claim(store, sub, 'w', MANY)).map(({ event }) => event.schemaVersion)
    expect(versions).toEqual([1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  })

  test('looks for its events in the partitions that they are in, and in no other', async () => {
    await using h = await hazard()
    await partitionInThePast(h.db, 6)
    const { store, pool } = h.worker('w')
    const sub = await join(store)
    const publish = async (): Promise<void> => {
      for (const daysAgo of [4, 3]) await publishedOn(h.db, { daysAgo, count: 3 })
    }
    await publish()
    expect(await claim(store, sub, 'w', MANY)).toHaveLength(6)
    const { text, values } = pool.lastSent(/c.event_id desc limit 1/)
    await publish()
    const plan = await explain(await h.connect('explain'), { text, values })
    const names = await partitions(h.db, 'outbox_event')
    expect(names.length).toBeGreaterThan(6)
    expect(tablesRead(plan).filter((name) => names.includes(name))).toHaveLength(2)
  })
})
