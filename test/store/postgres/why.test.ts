import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SubscriptionReason } from '../../../src/inspect/proof.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { lapseLeases } from '../../support/leases.ts'
import {
  beat,
  claim,
  claimLanes,
  dead,
  definitionOf,
  join,
  retryLater,
  settled,
  takeLanes,
} from '../contract/helpers.ts'
import { insertEvent } from './fixtures.ts'
import { createProofDatabase, type ProofDatabase, publish, sabotage, settle } from './proof-fixtures.ts'

let db: ProofDatabase

beforeEach(async () => {
  db = await createProofDatabase()
})
afterEach(async () => {
  await db.drop()
})

const why = async (eventId: string | undefined): Promise<SubscriptionReason | undefined> =>
  (await db.proof.why(eventId ?? '')).subscriptions[0]

/** A subscription that a live worker serves. */
async function served(options: Parameters<typeof join>[1] = {}): ReturnType<typeof join> {
  const sub = await join(db.worker, options)
  await beat(db.worker, sub, 'w', [])
  return sub
}

describe('why', () => {
  test('an event was delivered', async () => {
    const sub = await served()
    const [eventId] = await publish(db, 1)
    await settle(db, sub, 1)
    const found = await why(eventId)
    expect(found).toMatchObject({
      subscription: 'sub',
      reason: { kind: 'delivered', at: expect.any(Date), attempts: 1 },
    })
    expect(found?.sentence).toMatch(/^Delivered at 20\d\d-.*Z\.$/)
  })

  test('it waits for its next attempt, after which error', async () => {
    const sub = await served()
    const [eventId] = await publish(db, 1)
    await settle(db, sub, 1, retryLater)
    const found = await why(eventId)
    expect(found?.reason).toMatchObject({
      kind: 'retrying',
      at: expect.any(Date),
      attempts: 1,
      maxAttempts: 3,
      errorCode: 'BOOM',
      errorMessage: 'it failed',
    })
    expect(found?.sentence).toMatch(/^Waits for its next attempt at .*, after 1 of 3: BOOM: it failed\.$/)
  })

  test.each([
    ['one that waits for its retry', retryLater, 'PENDING', 'which is PENDING'],
    ['a dead letter', dead, 'DEAD', 'which failed for good and waits for a person'],
  ])('it stands behind an event of the same aggregate: %s', async (_, settlement, status, words) => {
    const sub = await served({ orderBy: 'aggregate' })
    const [first, second] = await publish(db, 2)
    const lanes = await takeLanes(db.worker, sub, 'w')
    const [claimed] = await claimLanes(db.worker, sub, 'w', lanes, 1)
    if (claimed !== undefined) await db.worker.settle([settled(claimed, settlement)])
    const found = await why(second)
    expect(found?.reason).toEqual({ kind: 'behind', eventId: first, status, redriveAt: null })
    expect(found?.sentence).toContain(`Behind event ${first} of the same key, ${words}`)
  })

  test('it stands behind an event of the same aggregate that is in hand, or that nobody took yet', async () => {
    const sub = await served({ orderBy: 'aggregate' })
    const [first, second] = await publish(db, 2)
    expect((await why(second))?.reason).toEqual({
      kind: 'behind',
      eventId: first,
      status: 'PENDING',
      redriveAt: null,
    })
    await claimLanes(db.worker, sub, 'w', await takeLanes(db.worker, sub, 'w'), 1)
    expect((await why(second))?.reason).toMatchObject({
      kind: 'behind',
      eventId: first,
      status: 'PROCESSING',
    })
    expect((await why(await insertEvent(db.pool, { aggregateId: 'other' })))?.reason.kind).toBe('ready')
  })

  test('its subscription is paused, and by whom', async () => {
    await served()
    const [eventId] = await publish(db, 1)
    await postgresStore({ pool: db.pool, schema: db.schema }).setPaused('sub', true, 'kim', null)
    expect((await why(eventId))?.reason).toMatchObject({ kind: 'paused', by: 'kim', at: expect.any(Date) })
  })

  test('a worker has it in hand, or had it and is gone', async () => {
    const sub = await served()
    const [eventId] = await publish(db, 1)
    await claim(db.worker, sub, 'w-7')
    expect((await why(eventId))?.reason).toMatchObject({
      kind: 'leased',
      worker: 'w-7',
      until: expect.any(Date),
      attempt: 1,
      maxAttempts: 3,
    })
    await db.pool.query(`update outbox_delivery set locked_until = now() - interval '1 minute'`)
    expect((await why(eventId))?.reason).toMatchObject({ kind: 'lapsed', worker: 'w-7', hasLiveWorker: true })
    await db.worker.leave('w')
    expect((await why(eventId))?.sentence).toContain('no live worker is there to take it back')
  })

  test('it is a dead letter, and who settled it', async () => {
    const sub = await served()
    const [eventId] = await publish(db, 1)
    await settle(db, sub, 1, dead)
    const found = await why(eventId)
    expect(found?.reason).toMatchObject({
      kind: 'dead',
      deadLetter: '1',
      errorCode: 'BOOM',
      resolvedBy: null,
    })
    expect(found?.sentence).toBe('Failed for good: dead letter 1, BOOM: it failed. It waits for a person.')
    await db.pool.query(`select outbox_resolve(1, 'kim', 'by phone')`)
    expect((await why(eventId))?.reason).toMatchObject({ kind: 'dead', resolvedBy: 'kim' })
    await db.pool.query(`select outbox_purge('0', 'kim')`)
    const purged = await why(eventId)
    expect(purged?.reason).toMatchObject({ kind: 'dead', deadLetter: null, resolvedBy: null })
    expect(purged?.sentence).toBe(
      'Failed for good, BOOM: it failed. Its dead letter was decided on and has been purged.',
    )
  })

  test('it is a dead letter that its policy delivers again, or has given up, and so is what it stands behind', async () => {
    const sub = await served({ orderBy: 'aggregate' })
    const [first, second] = await publish(db, 2)
    const lanes = await takeLanes(db.worker, sub, 'w')
    const [claimed] = await claimLanes(db.worker, sub, 'w', lanes, 1)
    if (claimed !== undefined) await db.worker.settle([settled(claimed, dead)])
    await db.pool.query(`update outbox_dead_letter set redrive_at = '2030-01-02T03:04:05Z'`)
    const redriveAt = new Date('2030-01-02T03:04:05Z')
    const ahead = await why(first)
    expect(ahead?.reason).toMatchObject({ kind: 'dead', resolvedBy: null, redriveAt })
    expect(ahead?.sentence).toBe(
      'Failed for good: dead letter 1, BOOM: it failed. ' +
        'A re-drive policy delivers it again at 2030-01-02T03:04:05.000Z, as long as the code has that policy.',
    )
    const behind = await why(second)
    expect(behind?.reason).toMatchObject({ kind: 'behind', eventId: first, redriveAt })
    expect(behind?.sentence).toBe(
      `Behind event ${first} of the same key, which failed for good and is delivered again by a re-drive policy ` +
        'at 2030-01-02T03:04:05.000Z, as long as the code has that policy.',
    )
    await db.pool.query(`update outbox_dead_letter set redrive_at = 'infinity'`)
    expect((await why(first))?.sentence).toMatch(/It waits for a person\.$/)
    expect((await why(second))?.sentence).toMatch(/failed for good and waits for a person\.$/)
  })

  test('nobody serves its subscription', async () => {
    await join(db.worker)
    const [eventId] = await publish(db, 1)
    expect((await why(eventId))?.reason).toEqual({ kind: 'no-worker' })
  })

  test('its subscription is joining, and what that waits for', async () => {
    const open = await db.pool.connect()
    await open.query('begin; select pg_current_xact_id()')
    const sub = await db.worker.register(definitionOf({ orderBy: 'aggregate' }))
    await db.worker.advanceJoining()
    await beat(db.worker, sub, 'w', [])
    const [eventId] = await publish(db, 1)
    const found = await why(eventId)
    await open.query('rollback')
    open.release()
    expect(found?.reason).toMatchObject({ kind: 'joining', waitsFor: expect.anything() })
    expect(found?.sentence).toMatch(/^The subscription is joining and waits for /)
  })

  test('nothing is in its way', async () => {
    await served()
    const [eventId] = await publish(db, 1)
    expect((await why(eventId))?.reason).toEqual({ kind: 'ready', attempts: 0 })
  })

  test('D4 no subscription takes it', async () => {
    await served({ eventTypes: ['OrderPaid'] })
    const [eventId] = await publish(db, 1)
    expect(await db.proof.why(eventId ?? '')).toMatchObject({
      unmatched: true,
      event: { eventType: 'OrderPlaced', stream: 'shop.order', aggregateType: 'order', aggregateId: '1' },
      subscriptions: [{ reason: { kind: 'not-taken' } }],
    })
  })

  test('it was published before its subscription began', async () => {
    const [eventId] = await publish(db, 1)
    await served()
    expect(await db.proof.why(eventId ?? '')).toMatchObject({
      unmatched: false,
      subscriptions: [{ reason: { kind: 'before-start' } }],
    })
  })

  test('its delivery is missing', async () => {
    await served()
    const [eventId] = await publish(db, 1)
    await sabotage(db, 'delete from outbox_delivery')
    expect((await why(eventId))?.reason).toEqual({ kind: 'missing' })
  })

  test('it runs apart, because its worker vanished with it', async () => {
    const sub = await served()
    const [eventId] = await publish(db, 2)
    await claim(db.worker, sub, 'gone')
    await lapseLeases(db.pool, 'gone')
    await db.worker.recover([sub.id])
    expect((await why(eventId))?.reason).toMatchObject({ kind: 'suspect' })
  })

  test('an event that is not committed cannot be told from one that never was', async () => {
    await served()
    const publisher = await db.pool.connect()
    await publisher.query('begin')
    const uncommitted = await insertEvent(publisher)
    const report = await db.proof.why(uncommitted)
    const unknown = await db.proof.why(randomUUID())
    await publisher.query('rollback')
    publisher.release()
    expect(report).toEqual({ ...unknown, eventId: uncommitted })
    expect(unknown).toMatchObject({ event: null, subscriptions: [], unmatched: false, letters: [] })
  })

  test('an event that is gone is found in the dead letter that outlived it', async () => {
    const sub = await served()
    const [eventId] = await publish(db, 1)
    await settle(db, sub, 1, dead)
    await db.worker.leave('w')
    await db.pool.query(`select outbox_resolve(1, 'kim'); select outbox_retire('sub', 'kim')`)
    await db.pool.query('select outbox_forget(array(select event_id from outbox_event))')
    expect(await db.proof.why(eventId ?? '')).toMatchObject({
      event: null,
      letters: [{ id: '1', subscription: 'sub', resolved: true, resolvedBy: 'kim' }],
    })
  })

  test('each of several subscriptions has its own reason, also one that is retired and has a delivery', async () => {
    const mailer = await served({ name: 'mailer' })
    const ledger = await served({ name: 'ledger' })
    await join(db.worker, { name: 'old' })
    const [eventId] = await publish(db, 1)
    await beat(db.worker, ledger, 'w', [])
    await settle(db, mailer, 1)
    await db.pool.query(`select outbox_retire('old', 'kim', discard => true)`)
    const { subscriptions } = await db.proof.why(eventId ?? '')
    expect(subscriptions.map(({ subscription, reason }) => [subscription, reason.kind])).toEqual([
      ['ledger', 'ready'],
      ['mailer', 'delivered'],
      ['old', 'dead'],
    ])
  })
})
