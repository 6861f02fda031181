import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import { eventually } from '../../support/program.ts'
import { aggregates, claim, claimLanes, definitionOf, takeLanes } from '../contract/helpers.ts'
import { createOutboxDatabase, insertEvent, inTransaction, type OutboxDatabase, one } from './fixtures.ts'

// A dump that is restored on another server brings the transaction ids of the old one, which the new one will not come
// to for years. Its triggers are made after its rows are loaded.

let db: OutboxDatabase
let store: PostgresWorkerStore

beforeEach(async () => {
  db = await createOutboxDatabase()
  store = new PostgresWorkerStore({ pool: db.pool, own: false }, db.quoted, systemClock)
})
afterEach(async () => {
  await db.drop()
})

const AHEAD = 1_000_000_000_000

/** Makes everything look as if it had been dumped on a server that is far ahead of this one, and restored here. */
async function restore(): Promise<void> {
  const ahead = (value: string): string => `((${value})::text::bigint + ${AHEAD})`
  await inTransaction(db, async (client) => {
    await client.query(`set local session_replication_role = replica`)
    await client.query(`update outbox_event set xid = ${ahead('xid')}::text::xid8`)
    await client.query(
      `update outbox_subscription set barrier = ${ahead('barrier')}::text::xid8,
              joined_snapshot = (${ahead('pg_snapshot_xmin(joined_snapshot)')} || ':' ||
                                 ${ahead('pg_snapshot_xmax(joined_snapshot)')} || ':' ||
                                 coalesce((select string_agg(${ahead('x')}::text, ',' order by x)
                                             from pg_snapshot_xip(joined_snapshot) x), ''))::pg_snapshot`,
    )
    await client.query(`select setval('outbox_registry_xid', last_value + ${AHEAD}) from outbox_registry_xid`)
  })
}

const untilJoined = (): Promise<void> =>
  eventually('nothing joins', async () => (await store.advanceJoining()).length === 0)

describe('after a restore on another server', () => {
  test('every event that was pending is delivered, and so is what is published then', async () => {
    const sub = await store.register(definitionOf())
    await untilJoined()
    await insertEvent(db.pool, { aggregateId: 'before' })

    await restore()
    await insertEvent(db.pool, { aggregateId: 'after' })

    expect(aggregates(await claim(store, sub, 'w'))).toEqual(['before', 'after'])
  })

  test('a subscription that was joining goes on: nothing is missing, and it does not wait for ids to come', async () => {
    const publisher = await db.pool.connect()
    await publisher.query('begin')
    await insertEvent(publisher, { aggregateId: 'missed by its trigger' })
    const sub = await store.register(definitionOf())
    await store.advanceJoining()
    await publisher.query('commit')
    publisher.release()

    await restore()
    await untilJoined()

    expect(aggregates(await claim(store, sub, 'w'))).toEqual(['missed by its trigger'])
  })

  test('an ordered subscription that is being widened is served on, old events before new ones', async () => {
    const sub = await store.register(definitionOf({ eventTypes: ['Old'], orderBy: 'aggregate', lanes: 1 }))
    await untilJoined()
    const lanes = await takeLanes(store, sub, 'w')
    const old = await db.pool.connect()
    await old.query('begin; select pg_current_xact_id()')
    await insertEvent(db.pool, { type: 'Old', orderingKey: 'k', aggregateId: 'before' })
    await store.register(definitionOf({ eventTypes: ['Old', 'New'], orderBy: 'aggregate', lanes: 1 }))

    await restore()
    await insertEvent(db.pool, { type: 'New', orderingKey: 'k', aggregateId: 'after' })
    await store.advanceJoining()
    const claimed = await claimLanes(store, sub, 'w', lanes)
    await old.query('commit')
    old.release()

    expect(aggregates(claimed)).toEqual(['before', 'after'])
  })

  test('a subscription from a time on takes no event from before it', async () => {
    await insertEvent(db.pool, { aggregateId: 'old' })
    await restore()
    await inTransaction(db, async (client) => {
      await client.query('set local session_replication_role = replica')
      await client.query(`update outbox_event set created_at = now() - interval '1 hour'`)
    })
    const startFrom = await one<Date>(db.pool, `select now() - interval '1 minute'`)
    await insertEvent(db.pool, { aggregateId: 'new' })

    const sub = await store.register(definitionOf({ startFrom }))
    await untilJoined()

    expect(aggregates(await claim(store, sub, 'w'))).toEqual(['new'])
  })

  test('one from now on takes none of them, and one from the beginning takes all', async () => {
    await insertEvent(db.pool, { aggregateId: 'old' })
    await restore()
    const now = await store.register(definitionOf({ name: 'now' }))
    const all = await store.register(definitionOf({ name: 'all', startFrom: 'beginning' }))
    await untilJoined()

    expect(await claim(store, now, 'w')).toEqual([])
    expect(aggregates(await claim(store, all, 'w'))).toEqual(['old'])
  })
})
