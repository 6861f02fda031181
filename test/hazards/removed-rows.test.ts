import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { postgresStore } from '../../src/store/postgres/postgres-store.ts'
import { retentionSettings } from '../../src/store/postgres/retention-settings.ts'
import type { RetentionRequest } from '../../src/store/retention-store.ts'
import { claim, DONE, join, settled } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { policyOf, retain } from '../store/postgres/retention-fixtures.ts'
import { createOwnDatabase, type Hazard, hazard, withoutAutovacuum } from './support.ts'

const MANY = 4_000
const FEW = 40
const BATCH = 100
/** A batch is looked at some times, and so is what is left: nothing that is gone. */
const MOST_READ = MANY / 2

const retentionOf = ({ db }: Hazard) => postgresStore({ pool: db.pool, schema: db.schema }).retention

/** Events of one stream after those of another, all of them done. */
async function doneEvents(h: Hazard, streams: Readonly<Record<string, number>>): Promise<void> {
  // Once the planner has counted how few are left it reads all of an index, where a VACUUM has not yet been through it.
  for (const table of ['outbox_event', 'outbox_delivery']) await withoutAutovacuum(h, table)
  const { store } = h.worker('worker')
  const sub = await join(store)
  for (const [stream, count] of Object.entries(streams)) {
    await h.db.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       select $1, 'ThingHappened', 'thing', n::text, '{}' from generate_series(1, $2::int) n`,
      [stream, count],
    )
  }
  const claimed = await claim(store, sub, 'w', MANY * 2)
  await store.settle(claimed.map((delivery) => settled(delivery, DONE)))
}

const READ = `
  select coalesce(sum(pg_stat_get_xact_tuples_returned(x.indexrelid)), 0)::int
    from pg_index x join pg_class c on c.oid = x.indrelid
   where c.relname like any (array['outbox\\_event%', 'outbox\\_delivery%'])`

interface Step {
  readonly state: string
  readonly deleted: number
  /** Entries of indexes that were read, of rows that are gone too. */
  readonly read: number
}

/** Begins a run and steps to its end on one connection. */
async function steps(client: pg.Client, request: RetentionRequest): Promise<readonly Step[]> {
  const begun = await client.query<{ id: string }>('select outbox_begin_retention($1, $2::jsonb) as id', [
    request.policy,
    retentionSettings(request),
  ])
  const taken: Step[] = []
  for (;;) {
    await client.query('begin')
    // What the steps before have read is in it until the server reports it, which it does once in a second.
    const before = await one<number>(client, READ)
    const { rows } = await client.query<{ state: string; deleted: number }>(
      `select state, deleted from outbox_retain($1, 'kim', null, 'me', ${BATCH})`,
      [begun.rows[0]?.id],
    )
    const read = (await one<number>(client, READ)) - before
    await client.query('commit')
    const [{ state, deleted } = { state: 'busy', deleted: 0 }] = rows
    taken.push({ state, deleted, read })
    if (state === 'done') return taken
    if (state === 'busy') throw new Error('nobody else should be at it')
  }
}

const most = (taken: readonly Step[]): number => Math.max(...taken.map(({ read }) => read))
const sum = (taken: readonly Step[]): number => taken.reduce((all, { deleted }) => all + deleted, 0)

describe('a retention run', () => {
  test('does not read through what another has removed before the first of its own', async () => {
    await using h = await hazard(createOwnDatabase)
    await doneEvents(h, { first: MANY, second: FEW })
    await retain({ retention: retentionOf(h) }, { policy: 'first', stream: 'first' }, BATCH)
    const client = await h.connect('second')
    const taken = await steps(client, policyOf({ policy: 'second', stream: 'second' }))
    expect(sum(taken)).toBe(FEW)
    expect(most(taken)).toBeLessThan(MOST_READ)
  })

  test('nor what another has removed among its own', async () => {
    await using h = await hazard(createOwnDatabase)
    await doneEvents(h, { second: FEW, first: MANY, third: FEW })
    await retain({ retention: retentionOf(h) }, { policy: 'first', stream: 'first' }, BATCH)
    const client = await h.connect('all')
    const taken = await steps(client, policyOf())
    expect(sum(taken)).toBe(2 * FEW)
    expect(most(taken)).toBeLessThan(MOST_READ)
  })

  test('finds what came back to a place that was empty: a subscription registered meanwhile', async () => {
    await using h = await hazard(createOwnDatabase)
    // Between events that are delivered, some that nobody takes.
    const { store } = h.worker('worker')
    const sub = await join(store, { eventTypes: ['ThingHappened'] })
    const insert = (type: string): Promise<unknown> =>
      h.db.pool.query(
        `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
         select 'first', $1, 'thing', n::text, '{}' from generate_series(1, 3) n`,
        [type],
      )
    for (const type of ['ThingHappened', 'OtherHappened', 'ThingHappened']) await insert(type)
    await store.settle((await claim(store, sub, 'w', 10)).map((delivery) => settled(delivery, DONE)))
    const { retention } = { retention: retentionOf(h) }
    expect(await retain({ retention })).toMatchObject({ deleted: 6 })
    const late = await join(store, { name: 'late', startFrom: 'beginning', eventTypes: ['OtherHappened'] })
    await store.settle((await claim(store, late, 'w', 10)).map((delivery) => settled(delivery, DONE)))
    await h.db.pool.query('delete from outbox_unmatched')
    expect(await retain({ retention })).toMatchObject({ deleted: 3 })
  })

  test('finds what is published at the positions after the last one that was taken away', async () => {
    await using h = await hazard(createOwnDatabase)
    const retention = retentionOf(h)
    const { store } = h.worker('worker')
    const sub = await join(store)
    for (const stream of ['first', 'second']) {
      await h.db.pool.query(
        `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
         values ($1, 'ThingHappened', 'thing', '1', '{}')`,
        [stream],
      )
      await store.settle((await claim(store, sub, 'w', 1)).map((delivery) => settled(delivery, DONE)))
      expect(await retain({ retention }, { policy: stream }, BATCH)).toMatchObject({ deleted: 1 })
    }
  })

  test('goes through events that nobody was there for once, and not once for each batch', async () => {
    await using h = await hazard(createOwnDatabase)
    await h.db.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       select 'kept', 'ThingHappened', 'thing', n::text, '{}' from generate_series(1, $1::int) n`,
      [MANY],
    )
    const client = await h.connect('unserved')
    const taken = await steps(client, policyOf({ stream: 'first' }))
    expect(taken.reduce((all, { read }) => all + read, 0)).toBeLessThan(5 * MANY)
  })
})
