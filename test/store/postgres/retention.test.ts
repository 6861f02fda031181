import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { amendDeadLetter } from '../../../src/store/postgres/amend-dead-letter.ts'
import { eventIdForLayout } from '../../support/install-tables.ts'
import { claimLanes, DONE, dead, join, retryLater, settled, takeLanes } from '../contract/helpers.ts'
import { column, insertEvent, one } from './fixtures.ts'
import { publish, sabotage, settle } from './proof-fixtures.ts'
import {
  createRetentionDatabase,
  PACE,
  policyOf,
  type RetentionDatabase,
  retain,
} from './retention-fixtures.ts'

let db: RetentionDatabase

beforeEach(async () => {
  db = await createRetentionDatabase()
})
afterEach(async () => {
  await db.drop()
})

const left = (): Promise<string[]> => column(db.pool, 'select event_id from outbox_event order by id')
const holds = async (): Promise<boolean> => (await db.proof.verify()).holds

describe('what retention lets go', () => {
  test('is done for every subscription, and goes with its deliveries', async () => {
    const sub = await join(db.worker)
    const other = await join(db.worker, { name: 'other' })
    const [, second] = await publish(db, 2)
    await settle(db, sub, 2)
    await settle(db, other, 1)
    expect(await retain(db)).toEqual({ deleted: 1, archived: 0 })
    expect(await left()).toEqual([second])
    expect(await one(db.pool, 'select count(*)::int from outbox_delivery')).toBe(2)
    expect(await holds()).toBe(true)
  })

  test('was done before the cut', async () => {
    const sub = await join(db.worker)
    const [old, young] = await publish(db, 2)
    await settle(db, sub, 2)
    await sabotage(
      db,
      `update outbox_delivery set processed_at = processed_at - interval '8 days' where event_id = $1`,
      [old],
    )
    await sabotage(
      db,
      `update outbox_event set created_at = created_at - interval '9 days' where event_id = $1`,
      [old],
    )
    expect(await retain(db, { keepSeconds: 7 * 86_400 })).toEqual({ deleted: 1, archived: 0 })
    expect(await left()).toEqual([young])
  })

  test('is nothing that waits, is in hand, failed or is dead', async () => {
    const sub = await join(db.worker)
    await publish(db, 3)
    await settle(db, sub, 1, dead)
    await settle(db, sub, 1, retryLater)
    expect(await retain(db)).toEqual({ deleted: 0, archived: 0 })
    const letter = await one<string>(db.pool, 'select id from outbox_dead_letter')
    await db.pool.query(`select outbox_resolve($1, 'kim')`, [letter])
    expect(await retain(db)).toEqual({ deleted: 0, archived: 0 })
    expect(await left()).toHaveLength(3)
  })

  test('is what a retired subscription has buried, but not while a dead letter of it is open', async () => {
    const sub = await join(db.worker)
    await publish(db, 2)
    await settle(db, sub, 1, dead)
    await settle(db, sub, 1)
    await db.pool.query(`select outbox_retire('sub', 'kim')`)
    expect(await retain(db)).toEqual({ deleted: 1, archived: 0 })
    await db.pool.query(`select outbox_resolve(id, 'kim') from outbox_dead_letter`)
    expect(await retain(db)).toEqual({ deleted: 1, archived: 0 })
  })

  test('is what was published when there was no subscription, as long ago as for all others', async () => {
    await publish(db, 2)
    await insertEvent(db.pool, { eventId: '01000000-0000-7000-8000-000000000001' })
    const sub = await join(db.worker)
    const [later] = await publish(db, 1)
    expect(await retain(db, { keepSeconds: 3600 })).toEqual({ deleted: 0, archived: 0 })
    expect(await retain(db, {}, 2)).toEqual({ deleted: 3, archived: 0 })
    expect(await left()).toEqual([later])
    await settle(db, sub, 1)
    expect(await retain(db)).toEqual({ deleted: 1, archived: 0 })
  })

  test('is what nobody took, once it was reported and no dead letter of it is open', async () => {
    await join(db.worker, { streams: ['other'] })
    await publish(db, 2)
    expect(await retain(db)).toEqual({ deleted: 0, archived: 0 })
    await db.worker.takeUnmatched(1, true)
    await db.worker.takeUnmatched(1, false)
    expect(await retain(db, {}, 1)).toEqual({ deleted: 1, archived: 0 })
    await db.pool.query(`select outbox_resolve(id, 'kim') from outbox_dead_letter`)
    expect(await retain(db)).toEqual({ deleted: 1, archived: 0 })
    expect(await one(db.pool, 'select count(*)::int from outbox_unmatched')).toBe(0)
  })

  test('is of the streams of the policy, and not of one that comes before it', async () => {
    const sub = await join(db.worker)
    for (const stream of ['shop.order', 'shop.audit', 'other']) await insertEvent(db.pool, { stream })
    await settle(db, sub, 3)
    expect(await retain(db, { stream: 'shop.*', before: ['shop.audit'] })).toEqual({
      deleted: 1,
      archived: 0,
    })
    expect(await column(db.pool, 'select stream from outbox_event order by id')).toEqual([
      'shop.audit',
      'other',
    ])
  })

  test('is found in every lane of an ordered subscription, in batches of any size', async () => {
    const sub = await join(db.worker, { orderBy: 'aggregate' })
    for (let n = 0; n < 20; n += 1)
      await insertEvent(db.pool, { aggregateId: String(n), sequenced: n % 2 === 0 })
    const lanes = await takeLanes(db.worker, sub, 'w')
    const claimed = await claimLanes(db.worker, sub, 'w', lanes)
    await db.worker.settle(claimed.slice(0, 19).map((delivery) => settled(delivery, DONE)))
    expect(await retain(db, {}, 3)).toEqual({ deleted: 19, archived: 0 })
    expect(await left()).toHaveLength(1)
    expect(await holds()).toBe(true)
  })

  test('goes together with what stood in for it, at the same position', async () => {
    const sub = await join(db.worker)
    const other = await join(db.worker, { name: 'other' })
    await publish(db, 1)
    await settle(db, sub, 1, dead)
    await settle(db, other, 1)
    const letter = await one<string>(db.pool, 'select id from outbox_dead_letter')
    const request = { payloadJson: '{}', schemaVersion: null, operator: 'kim', note: null }
    await amendDeadLetter(db.pool, db.quoted, letter, { ...request, eventId: eventIdForLayout() })
    expect(await retain(db)).toEqual({ deleted: 0, archived: 0 })
    await settle(db, sub, 1)
    expect(await retain(db)).toEqual({ deleted: 2, archived: 0 })
    expect(await left()).toEqual([])
    expect(await one(db.pool, 'select count(*)::int from outbox_delivery')).toBe(0)
    expect(await holds()).toBe(true)
  })

  test('is only what a verified export of its stream has, where one is asked for', async () => {
    const sub = await join(db.worker)
    await publish(db, 3)
    await settle(db, sub, 3)
    const [, second] = await column<string>(db.pool, 'select id from outbox_event order by id')
    const hash = 'a'.repeat(64)
    const exported = `select outbox_record_export($1, 1, $2, 2, '/cold/' || $1, $3, false, '{}', 'kim')`
    const verified = `select outbox_verify_export(id, $2, 'kim') from outbox_export where stream = $1`
    await db.pool.query(exported, ['shop.order', second, hash])
    await db.pool.query(exported, ['other', second, hash])
    await db.pool.query(verified, ['other', hash])
    expect(await retain(db, { requireExport: true })).toEqual({ deleted: 0, archived: 0 })
    const [run] = await db.retention.retentionRuns('all')
    expect(run).toMatchObject({ awaitingExport: 3 })
    await db.pool.query(verified, ['shop.order', hash])
    expect(await retain(db, { requireExport: true })).toEqual({ deleted: 2, archived: 0 })
  })
})

describe('a run', () => {
  test('leaves what somebody has locked, and takes it the next time', async () => {
    const sub = await join(db.worker)
    const [locked] = await publish(db, 3)
    await settle(db, sub, 3)
    const client = await db.pool.connect()
    await client.query('begin')
    await client.query('select 1 from outbox_delivery where event_id = $1 for update', [locked])
    expect(await retain(db)).toEqual({ deleted: 2, archived: 0 })
    expect(await left()).toEqual([locked])
    await client.query('rollback')
    await client.query('begin')
    await client.query('select 1 from outbox_event where event_id = $1 for update', [locked])
    expect(await retain(db)).toEqual({ deleted: 0, archived: 0 })
    await client.query('rollback')
    client.release()
    expect(await retain(db)).toEqual({ deleted: 1, archived: 0 })
  })

  test('records each batch in the operator log, in the same transaction', async () => {
    const sub = await join(db.worker)
    await publish(db, 4)
    await settle(db, sub, 4)
    await retain(db, {}, 3)
    const logged = await db.pool.query(
      `select operator, action, affected, target ->> 'policy' as policy from outbox_operator_log order by id`,
    )
    expect(logged.rows).toEqual([
      { operator: 'kim', action: 'retain', affected: 3, policy: 'all' },
      { operator: 'kim', action: 'retain', affected: 1, policy: 'all' },
    ])
    expect(await db.proof.audit()).toMatchObject({ holds: true })
  })

  test('is begun once for each time that the hour strikes, and again by hand', async () => {
    const hour = new Date().getUTCHours()
    const id = await db.retention.beginRetention(policyOf(), hour)
    expect(await db.retention.beginRetention(policyOf(), hour)).toBe(id)
    await retain(db)
    expect(await db.retention.beginRetention(policyOf(), hour)).toBeNull()
    expect(await db.retention.beginRetention(policyOf(), (hour + 1) % 24)).toBeNull()
    await db.pool.query(`update outbox_retention_run set started_at = started_at - interval '25 hours'`)
    expect(await db.retention.beginRetention(policyOf(), hour)).not.toBeNull()
  })

  test('is given up for another where its policy says something else', async () => {
    const id = await db.retention.beginRetention(policyOf(), null)
    const next = await db.retention.beginRetention(policyOf({ keepSeconds: 60 }), null)
    expect(next).not.toBe(id)
    expect(await db.retention.retentionRuns('all')).toMatchObject([
      { id: next, finishedAt: null },
      { id, superseded: true },
    ])
  })

  test('is left to whoever carries it out, by a worker whose policy of that name says something else', async () => {
    const sub = await join(db.worker)
    await publish(db, 3)
    await settle(db, sub, 3)
    const hour = new Date().getUTCHours()
    const other = policyOf({ keepSeconds: 60 })
    const id = (await db.retention.beginRetention(policyOf(), hour)) as string
    expect(await db.retention.beginRetention(other, hour)).toBeNull()
    await db.retention.stepRetention(id, 'one', { ...PACE, batchSize: 1 }, null)
    expect(await db.retention.beginRetention(other, hour)).toBeNull()
    expect(await db.retention.beginRetention(policyOf(), hour)).toBe(id)
    // It is gone, and so is its deployment: the other begins anew.
    await db.pool.query(
      `update outbox_retention_run set held_until = now(), updated_at = now() - interval '1 minute'`,
    )
    expect(await db.retention.beginRetention(other, hour)).not.toBeNull()
    expect(await db.retention.retentionRuns('all')).toMatchObject([
      { superseded: false },
      { superseded: true },
    ])
  })

  test('is carried out by one at a time, and by another once that one is gone', async () => {
    const sub = await join(db.worker)
    await publish(db, 3)
    await settle(db, sub, 3)
    const id = (await db.retention.beginRetention(policyOf(), null)) as string
    const step = (stepper: string) =>
      db.retention.stepRetention(id, stepper, { batchSize: 1, pauseMs: 0, share: 1 }, null)
    expect(await step('one')).toMatchObject({ state: 'running', deleted: 1 })
    expect(await step('two')).toMatchObject({ state: 'busy', deleted: 0 })
    await db.pool.query(`update outbox_retention_run set held_until = now()`)
    expect(await step('two')).toMatchObject({ state: 'running', deleted: 1 })
  })

  test('pauses so long that it has its share of the time', async () => {
    const sub = await join(db.worker)
    await publish(db, 1)
    await settle(db, sub, 1)
    const id = (await db.retention.beginRetention(policyOf(), null)) as string
    const pace = { batchSize: 1, pauseMs: 0, share: 0.000_01 }
    expect((await db.retention.stepRetention(id, 'one', pace, null)).waitMs).toBeGreaterThan(10_000)
    expect(await db.retention.stepRetention(id, 'one', pace, null)).toMatchObject({ state: 'busy' })
  })

  test('that is only looked at changes nothing, and counts what would go', async () => {
    const sub = await join(db.worker)
    await publish(db, 5)
    await settle(db, sub, 4)
    expect(await db.retention.previewRetention(policyOf())).toMatchObject({ events: 4 })
    expect(await left()).toHaveLength(5)
    expect(await db.retention.retentionRuns(null)).toEqual([])
  })
})
