import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { postgresStore } from '../../../src/store/postgres/index.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import type { RetireReport } from '../../../src/store/subscription-store.ts'
import { eventually } from '../../support/program.ts'
import { claim, DONE, definitionOf, join, settled } from '../contract/helpers.ts'
import { column, createOutboxDatabase, insertEvent, type OutboxDatabase, one, refusal } from './fixtures.ts'

let db: OutboxDatabase
let worker: PostgresWorkerStore
/** A person, or a handler, with a transaction open. */
let other: pg.PoolClient

beforeEach(async () => {
  db = await createOutboxDatabase()
  worker = new PostgresWorkerStore({ pool: db.pool, own: false }, db.quoted, systemClock)
  other = await db.pool.connect()
  await other.query('begin')
})
afterEach(async () => {
  await other.query('rollback')
  other.release()
  await db.drop()
})

function retire(): Promise<RetireReport> {
  const store = postgresStore({ pool: db.pool, schema: db.schema })
  return store.retireSubscription('sub', { operator: 'kim', note: 'old', discard: true, force: true })
}

const statuses = (): Promise<string[]> => column(db.pool, 'select status from outbox_delivery order by id')
const untilClosed = (): Promise<void> =>
  eventually('it is closed', async () => {
    await worker.advanceJoining()
    return one<boolean>(db.pool, `select closed_at is not null from outbox_subscription where name = 'sub'`)
  })

/** A subscription with three events, of which the first is in a worker's hand and locked. */
async function scene(): Promise<void> {
  const sub = await join(worker)
  for (let n = 0; n < 3; n += 1) await insertEvent(db.pool)
  await claim(worker, sub, 'w', 1)
  await other.query('select 1 from outbox_delivery order by id limit 1 for update')
}

describe('retiring a subscription of which somebody has a delivery locked', () => {
  test('waits for nobody, sets the others aside, and that one as soon as it is let go', async () => {
    await scene()
    expect(await retire()).toEqual({ discarded: 2, unresolvedDeadLetters: 0, locked: 1 })
    expect(await statuses()).toEqual(['PROCESSING', 'DEAD', 'DEAD'])
    await worker.advanceJoining()
    await other.query('rollback')
    await untilClosed()
    expect(await statuses()).toEqual(['DEAD', 'DEAD', 'DEAD'])
    const letters = await column(
      db.pool,
      'select note from outbox_dead_letter where resolved order by position',
    )
    expect(letters).toEqual(['published or locked while its subscription was retired', 'old', 'old'])
    expect(await column(db.pool, 'select affected from outbox_operator_log order by id')).toEqual([2, 1])
  })

  test('keeps nobody from registering meanwhile', async () => {
    await scene()
    await retire()
    expect(await worker.register(definitionOf({ name: 'next' }))).toMatchObject({ name: 'next' })
  })

  test('leaves one that is completed by the transaction that has it locked DONE', async () => {
    await scene()
    await other.query(
      `update outbox_delivery set status = 'DONE', fresh = false, processed_at = now(), locked_by = null, locked_until = null,
              lease_token = null where status = 'PROCESSING'`,
    )
    expect(await retire()).toMatchObject({ discarded: 2, locked: 1 })
    await other.query('commit')
    await untilClosed()
    expect(await statuses()).toEqual(['DONE', 'DEAD', 'DEAD'])
    expect(await column(db.pool, 'select affected from outbox_operator_log')).toEqual([2])
  })

  test('says of what was in hand that nobody knows whether it was handled', async () => {
    const sub = await join(worker)
    for (let n = 0; n < 2; n += 1) await insertEvent(db.pool)
    await claim(worker, sub, 'w7', 1)
    await retire()
    expect(await column(db.pool, 'select error_message from outbox_dead_letter order by position')).toEqual([
      'Its subscription was retired while worker w7 had it in hand: it may or may not have been handled.',
      'Not delivered: its subscription was retired.',
    ])
  })

  test('gives up soon, with a clear error, where a lane of it is locked', async () => {
    await join(worker, { orderBy: 'aggregate', lanes: 2 })
    await other.query('select 1 from outbox_lane where lane = 1 for update')
    await db.pool.query(
      `alter function outbox_retire(text, text, text, boolean, boolean) set lock_timeout = '50ms'`,
    )
    await expect(retire()).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('"sub" was not retired, and nothing was changed'),
    })
    expect(await one(db.pool, 'select state from outbox_subscription')).toBe('active')
    expect(await worker.register(definitionOf({ name: 'next' }))).toMatchObject({ name: 'next' })
  })
})

test('forgetting an event gives up soon where its delivery is locked', async () => {
  const sub = await join(worker)
  await insertEvent(db.pool)
  const claimed = await claim(worker, sub, 'w')
  await worker.settle(claimed.map((delivery) => settled(delivery, DONE)))
  await other.query('select 1 from outbox_delivery for update')
  await db.pool.query(`alter function outbox_forget(uuid[]) set lock_timeout = '50ms'`)
  const forgetting = db.pool.query('select outbox_forget(array(select event_id from outbox_event))')
  expect(await refusal(forgetting)).toBe('55P03')
})
