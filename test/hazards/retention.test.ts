import { describe, expect, test } from 'vitest'
import { postgresStore } from '../../src/store/postgres/postgres-store.ts'
import type { RetentionStore } from '../../src/store/retention-store.ts'
import { claim, DONE, dead, definitionOf, join, settled, untilActive } from '../store/contract/helpers.ts'
import { column, insertEvent, one, refusal } from '../store/postgres/fixtures.ts'
import { PACE, policyOf, retain } from '../store/postgres/retention-fixtures.ts'
import { uuidV7At } from '../support/install-tables.ts'
import { eventually } from '../support/program.ts'
import { type Hazard, hazard, replaceFunction } from './support.ts'

const retentionOf = ({ db }: Hazard): RetentionStore =>
  postgresStore({ pool: db.pool, schema: db.schema }).retention

/** Events that the only subscription is done with. */
async function doneEvents(h: Hazard, count: number): Promise<void> {
  const { store } = h.worker('worker')
  const sub = await join(store)
  for (let n = 0; n < count; n += 1) await insertEvent(h.db.pool, { aggregateId: String(n) })
  const claimed = await claim(store, sub, 'w', count)
  await store.settle(claimed.map((delivery) => settled(delivery, DONE)))
}

/** Lets one batch go while a registration from the beginning is not committed yet. Returns what the newcomer gets. */
async function retainWhileRegistering(h: Hazard): Promise<readonly string[]> {
  await doneEvents(h, 2)
  const { store, pool } = h.worker('registrar')
  const hold = pool.holdBefore(/^commit/)
  const registering = store.register(definitionOf({ name: 'newcomer', startFrom: 'beginning' }))
  await hold.reached
  const retention = retentionOf(h)
  const runId = (await retention.beginRetention(policyOf(), null)) as string
  await retention.stepRetention(runId, 'r', PACE, null)
  hold.go()
  await registering
  await retention.stepRetention(runId, 'r', PACE, null)
  await untilActive(store)
  return column(
    h.db.pool,
    `select e.aggregate_id from outbox_delivery d join outbox_event e using (event_id)
       join outbox_subscription s on s.id = d.subscription_id where s.name = 'newcomer' order by d.id`,
  )
}

describe('retention while a subscription registers', () => {
  test('lets nothing go: the newcomer gets all of it', async () => {
    await using h = await hazard()
    expect(await retainWhileRegistering(h)).toEqual(['0', '1'])
  })

  test('takes the events from it if it does not look who is registering', async () => {
    await using h = await hazard()
    await replaceFunction(h, 'outbox_retention_waits', (definition) =>
      definition.replace(/not \S+outbox_try_lock_registry\(\)/, 'false'),
    )
    expect(await retainWhileRegistering(h)).toEqual([])
  })
})

describe('retention while a dead letter is retried', () => {
  test('keeps its event, before, during and after', async () => {
    await using h = await hazard()
    const { store } = h.worker('worker')
    const sub = await join(store)
    const eventId = await insertEvent(h.db.pool)
    const retention = retentionOf(h)
    const [claimed] = await claim(store, sub, 'w', 1)
    await store.settle([settled(claimed as never, dead)])
    expect(await retain({ retention })).toEqual({ deleted: 0, archived: 0 })
    const client = await h.connect('operator')
    await client.query('begin')
    await client.query(`select outbox_retry(id, 'kim') from outbox_dead_letter`)
    expect(await retain({ retention })).toEqual({ deleted: 0, archived: 0 })
    await client.query('commit')
    expect(await retain({ retention })).toEqual({ deleted: 0, archived: 0 })
    const again = await claim(store, sub, 'w', 1)
    expect(again.map(({ event }) => event.eventId)).toEqual([eventId])
    await store.settle(again.map((delivery) => settled(delivery, DONE)))
    expect(await retain({ retention })).toEqual({ deleted: 1, archived: 0 })
  })
})

/** Four carry one run out together, each of them whenever it can. Returns how much each archived. */
async function retainTogether(h: Hazard): Promise<readonly number[]> {
  await doneEvents(h, 60)
  const archive = { schema: h.db.schema, table: 'kept_events' }
  await retentionOf(h).ensureArchive(archive)
  const runId = (await retentionOf(h).beginRetention(policyOf({ archive }), null)) as string
  const free = `update outbox_retention_run set held_until = now() where finished_at is null`
  return Promise.all(
    ['a', 'b', 'c', 'd'].map(async (name) => {
      const { pool } = h.worker(name)
      const { retention } = postgresStore({ pool, schema: h.db.schema })
      let archived = 0
      await eventually('the run is done', async () => {
        const step = await retention.stepRetention(runId, name, { ...PACE, batchSize: 5 }, null)
        archived += step.archived
        // As if whoever held it were gone: the next may be anybody.
        if (step.state === 'running') await h.db.pool.query(free)
        return step.state === 'done'
      })
      return archived
    }),
  )
}

describe('an archived event, after the clock of the database was set back by most of a day', () => {
  const setBack = (h: Hazard): Promise<void> =>
    replaceFunction(h, 'outbox_fan_out', (definition) =>
      definition.replace('clock_timestamp()', `(clock_timestamp() - interval '23 hours')`),
    )
  const archiving = (h: Hazard) => ({ archive: { schema: h.db.schema, table: 'kept_events' } })

  test.each([3, 26])('cannot be published again: of %i hours before', async (hours) => {
    await using h = await hazard()
    const { store } = h.worker('worker')
    const sub = await join(store)
    const eventId = uuidV7At(Date.now() - hours * 3_600_000)
    await insertEvent(h.db.pool, { eventId })
    await store.settle((await claim(store, sub, 'w', 1)).map((delivery) => settled(delivery, DONE)))
    await retain({ retention: retentionOf(h) }, archiving(h))
    await setBack(h)
    expect(await refusal(insertEvent(h.db.pool, { eventId }))).toBe('23505')
  })
})

test('several who carry out one run at once take each event away once', async () => {
  await using h = await hazard()
  const shares = await retainTogether(h)
  expect(shares.reduce((sum, share) => sum + share, 0)).toBe(60)
  expect(await one(h.db.pool, 'select count(*)::int from kept_events')).toBe(60)
  const recorded = `select sum(affected)::int from outbox_operator_log where operator = 'policy:all'`
  expect(await one(h.db.pool, recorded)).toBe(60)
  expect(await one(h.db.pool, 'select archived::int from outbox_retention_run')).toBe(60)
  expect(await one(h.db.pool, 'select count(*)::int from outbox_event')).toBe(0)
})
