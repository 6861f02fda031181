import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { maskPayload } from '../../../src/event/mask-payload.ts'
import { InvalidOptionsError } from '../../../src/runtime/errors.ts'
import { systemIds } from '../../../src/runtime/ids.ts'
import { dead, join } from '../contract/helpers.ts'
import { column, insertEvent, one, refusal } from './fixtures.ts'
import { proofOf, publish, sabotage, settle } from './proof-fixtures.ts'
import {
  archiveOf,
  createRetentionDatabase,
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

/** So many events that are done and archived. Returns their ids. */
async function archived(count: number): Promise<readonly string[]> {
  const sub = await join(db.worker)
  const ids = await publish(db, count)
  await settle(db, sub, count)
  expect(await retain(db, { archive: archiveOf(db) }, 2)).toEqual({ deleted: 0, archived: count })
  return ids
}

describe('an archive', () => {
  test('is made, and has the event as it was with what became of its deliveries', async () => {
    const sub = await join(db.worker)
    const [eventId] = await publish(db, 1)
    const before = await db.pool.query('select * from outbox_event')
    await settle(db, sub, 1)
    await retain(db, { archive: archiveOf(db) })
    const { rows } = await db.pool.query('select * from kept_events')
    const { id, xid: _xid, ...event } = before.rows[0] as Record<string, unknown>
    expect(rows).toEqual([
      {
        ...event,
        position: id,
        masked: false,
        archived_at: expect.any(Date),
        deliveries: [
          {
            subscription: 'sub',
            subscriptionId: sub.id,
            status: 'DONE',
            attempts: 1,
            processedAt: expect.any(String),
          },
        ],
      },
    ])
    expect(eventId).toBe(event['event_id'])
    expect(await one(db.pool, 'select count(*)::int from outbox_event')).toBe(0)
  })

  test('may be a table that was there before, with columns of its own, and two may share it', async () => {
    await archived(2)
    await db.pool.query('alter table kept_events add column seen boolean default false')
    await db.pool.query('delete from outbox_archive')
    await publish(db, 1)
    const sub = await db.worker.register({
      name: 'sub',
      streams: null,
      eventTypes: null,
      orderBy: 'none',
      lanes: 0,
      onDead: 'block',
      maxAttempts: 3,
      startFrom: 'now',
    })
    await settle(db, sub, 1)
    expect(await retain(db, { policy: 'second', archive: archiveOf(db) })).toEqual({
      deleted: 0,
      archived: 1,
    })
    expect(await one(db.pool, 'select count(*)::int from kept_events where not seen')).toBe(3)
  })

  test('of another shape is refused with everything that is wrong, and nothing is changed', async () => {
    await db.pool.query('create table kept_events (event_id text, position bigint)')
    const ensuring = db.retention.ensureArchive(archiveOf(db))
    await expect(ensuring).rejects.toThrow(InvalidOptionsError)
    await expect(ensuring).rejects.toThrow(
      /its column event_id is text, but must be uuid[\s\S]*no column payload/,
    )
    expect(await one(db.pool, 'select count(*)::int from outbox_archive')).toBe(0)
  })

  test('that nobody made is named when a run would begin, by a role that may not make it', async () => {
    await expect(db.retention.beginRetention(policyOf({ archive: archiveOf(db) }), null)).rejects.toThrow(
      /there is no archive .*kept_events/,
    )
  })

  test.each(['Kept "Events" %s', "it's @@ $sql$"])('may be called anything: %s', async (table) => {
    const sub = await join(db.worker)
    await publish(db, 1)
    await settle(db, sub, 1)
    expect(await retain(db, { archive: archiveOf(db, table) })).toEqual({ deleted: 0, archived: 1 })
    expect(await db.proof.verify()).toMatchObject({ holds: true })
  })

  test('has masked what the catalogue hides, and nothing of a type that it does not know', async () => {
    const sub = await join(db.worker)
    await insertEvent(db.pool)
    const [unknown] = await publish(db, 1, { type: 'Unheard' })
    await settle(db, sub, 2)
    const mask = { OrderPlaced: ['total'], OrderPaid: [] }
    expect(await retain(db, { archive: archiveOf(db), mask })).toEqual({ deleted: 0, archived: 1 })
    expect(await column(db.pool, 'select payload from kept_events where masked')).toEqual([{ total: '***' }])
    expect(await column(db.pool, 'select event_id from outbox_event')).toEqual([unknown])
    expect(await db.retention.retentionRuns('all')).toMatchObject([{ archived: 1, unknownType: 1 }])
  })

  test('masks as maskPayload does, and keeps every digit beside it', async () => {
    const key = fc.constantFrom('a', 'b', '0', '1', '*', '', 'é')
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom(1, 'x', null, true),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 3 }),
      ),
    }))
    const path = fc.array(key, { minLength: 1, maxLength: 3 }).map((keys) => keys.join('.'))
    const samples = fc.sample(fc.tuple(value, fc.array(path, { maxLength: 3 })), 300)
    const masked = await column(
      db.pool,
      `select outbox_mask(s -> 0, s -> 1) from jsonb_array_elements($1::jsonb) with ordinality as t(s, n) order by n`,
      [JSON.stringify(samples)],
    )
    expect(masked).toEqual(samples.map(([payload, paths]) => maskPayload(payload, paths)))
    const digits = `select outbox_mask('{"a": 1, "n": 123456789012345678901234567890.10}', '["a"]')::text`
    expect(await one(db.pool, digits)).toBe('{"a": "***", "n": 123456789012345678901234567890.10}')
  })
})

describe('an event that was archived', () => {
  test('cannot be published again, whatever its id is like and whatever became of the archive', async () => {
    const sub = await join(db.worker)
    const old = '01000000-0000-7000-8000-000000000001'
    await insertEvent(db.pool, { eventId: old })
    const [random] = await publish(db, 1)
    await settle(db, sub, 2)
    expect(await retain(db, { archive: archiveOf(db) })).toEqual({ deleted: 0, archived: 2 })
    for (const eventId of [old, random as string]) {
      await expect(insertEvent(db.pool, { eventId })).rejects.toMatchObject({
        code: '23505',
        message: `event ${eventId} was archived and cannot be published again`,
      })
    }
    await db.pool.query(`select outbox_purge_archive($1, 'kept_events', '0', 'kim')`, [db.schema])
    expect(await one(db.pool, 'select count(*)::int from kept_events')).toBe(0)
    expect(await refusal(insertEvent(db.pool, { eventId: old }))).toBe('23505')
    expect(await refusal(db.pool.query('delete from outbox_archived'))).toBe('55000')
    expect(await one(db.pool, 'select count(*)::int from outbox_event')).toBe(0)
  })

  test('is refused by a transaction that cannot see that, because it began before', async () => {
    const sub = await join(db.worker)
    const [eventId] = await publish(db, 1)
    await settle(db, sub, 1)
    const client = await db.pool.connect()
    await client.query('begin isolation level repeatable read')
    await client.query('select 1')
    await retain(db, { archive: archiveOf(db) })
    expect(await refusal(insertEvent(client, { eventId: eventId as string }))).toBe('23505')
    await client.query('rollback')
    await client.query('begin isolation level repeatable read')
    await insertEvent(client, { eventId: randomUUID() })
    await client.query('commit')
    client.release()
    expect(await one(db.pool, 'select count(*)::int from outbox_archived')).toBe(1)
  })

  test('is not one whose id says that it is new: it stays until that time has passed', async () => {
    const sub = await join(db.worker)
    await insertEvent(db.pool, { eventId: systemIds.eventId() })
    await settle(db, sub, 1)
    expect(await retain(db, { archive: archiveOf(db) })).toEqual({ deleted: 0, archived: 0 })
    expect(await retain(db)).toEqual({ deleted: 1, archived: 0 })
  })
})

describe('the proof', () => {
  test('counts what was archived on both sides, and misses what is not in the archive', async () => {
    const [first] = await archived(5)
    const sub = await join(db.worker)
    await publish(db, 2)
    await settle(db, sub, 1, dead)
    expect(await proofOf(db)).toMatchObject({
      matched: 7,
      archived: 5,
      holds: true,
      counts: { DONE: 0, DEAD: 1 },
    })
    await db.pool.query('delete from kept_events where event_id = $1', [first])
    expect(await proofOf(db)).toMatchObject({
      matched: 7,
      archived: 4,
      holds: false,
      missing: { count: 1, eventIds: [first] },
    })
    await db.pool.query('alter table kept_events rename to elsewhere')
    expect(await proofOf(db)).toMatchObject({ archived: 0, holds: false, missing: { count: 5 } })
  })

  test('misses what stands in the archive under another id, and all of it where that was emptied', async () => {
    const [first] = await archived(3)
    await db.pool.query('update kept_events set event_id = $2 where event_id = $1', [first, randomUUID()])
    expect(await proofOf(db)).toMatchObject({
      matched: 3,
      archived: 2,
      holds: false,
      missing: { count: 1, eventIds: [first] },
    })
    await db.pool.query('truncate kept_events')
    expect(await proofOf(db)).toMatchObject({ matched: 3, archived: 0, holds: false, missing: { count: 3 } })
  })

  test('counts those of a window, and nothing that was purged from the archive', async () => {
    await archived(4)
    await sabotage(
      db,
      `update outbox_archived set created_at = created_at - interval '3 days'
        where position in (select position from outbox_archived order by position limit 2)`,
    )
    const window = { since: new Date(Date.now() - 4 * 86_400_000), until: new Date(Date.now() - 86_400_000) }
    const { subscriptions } = await db.proof.verify(window)
    expect(subscriptions).toMatchObject([{ matched: 2, archived: 2, holds: true }])
    await db.pool.query(`select outbox_purge_archive($1, 'kept_events', '0', 'kim', null, 3)`, [db.schema])
    expect(await proofOf(db)).toMatchObject({ matched: 1, archived: 1, holds: true })
    expect(
      await column(db.pool, `select affected from outbox_operator_log where action = 'purge-archive'`),
    ).toEqual([3])
  })
})
