import type pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createOutbox, defineEvents } from '../../../src/index.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import type { RetentionRequest, RetentionStore } from '../../../src/store/retention-store.ts'
import { eventually } from '../../support/program.ts'
import { column, insertEvent, one, refusal, subscribe } from './fixtures.ts'
import { PACE, policyOf, retain } from './retention-fixtures.ts'
import { createRolesDatabase, type Job, type RolesDatabase } from './role-fixtures.ts'

let db: RolesDatabase

beforeEach(async () => {
  db = await createRolesDatabase()
})
afterEach(async () => {
  await db.drop()
})

const as = (job: Job): RetentionStore => postgresStore({ pool: db.as[job], schema: db.schema }).retention
const archive = (): { schema: string; table: string } => ({ schema: db.schema, table: 'kept_events' })

/** An event that its only subscription is done with. */
async function doneEvent(): Promise<string> {
  await subscribe(db)
  const eventId = await insertEvent(db.pool)
  await db.pool.query(
    `update outbox_delivery set status = 'PROCESSING', fresh = false, attempt_count = 1, last_attempt_at = now(), locked_by = 'w',
            locked_until = now(), lease_token = 1`,
  )
  await db.pool.query(
    `update outbox_delivery set status = 'DONE', fresh = false, processed_at = now(), locked_by = null, locked_until = null, lease_token = null`,
  )
  return eventId
}

test('a worker carries policies out, into archives that the owner made, and says so under their name', async () => {
  await doneEvent()
  const store = postgresStore({ pool: db.pool, schema: db.schema })
  await expect(as('worker').ensureArchive(archive())).rejects.toThrow(/permission denied/)
  await store.retention.ensureArchive(archive())
  await as('worker').ensureArchive(archive())
  await store.retention.allowPolicy(policyOf({ archive: archive() }))
  const id = (await as('worker').beginRetention(policyOf({ archive: archive() }), 3)) as string
  expect(await as('worker').stepRetention(id, 'w', PACE, null)).toMatchObject({ archived: 1 })
  expect(await column(db.pool, 'select operator from outbox_operator_log')).toEqual(['policy:all'])
  const byHand = as('worker').stepRetention(id, 'w', PACE, { operator: 'kim', note: null })
  await expect(byHand).rejects.toThrow(/permission denied/)
})

test('a worker lets nothing go that the owner has not allowed: not sooner, of no other stream, and no other way', async () => {
  await doneEvent()
  const owner = postgresStore({ pool: db.pool, schema: db.schema }).retention
  const week = { keepSeconds: 604_800, stream: 'shop.*', before: ['shop.audit'] }
  const begin = (overrides: Partial<RetentionRequest>): Promise<string | null> =>
    as('worker').beginRetention(policyOf({ ...week, ...overrides }), 3)
  await expect(begin({})).rejects.toThrow(/"all" was not allowed.*retention\.prepare\(\)/s)
  await owner.allowPolicy(policyOf({ ...week, requireExport: true }))
  await owner.ensureArchive(archive())
  const refused: readonly Partial<RetentionRequest>[] = [
    { requireExport: true, keepSeconds: 604_799 },
    { requireExport: true, stream: '*' },
    { requireExport: true, before: [] },
    { requireExport: true, archive: archive() },
    { requireExport: true, policy: 'other' },
    { requireExport: false },
  ]
  for (const overrides of refused) await expect(begin(overrides)).rejects.toThrow(/was not allowed/)
  await expect(as('worker').beginRetention(policyOf(), null)).rejects.toThrow(/permission denied/)
  await expect(as('worker').allowPolicy(policyOf())).rejects.toThrow(/permission denied/)
  expect(await owner.retentionRuns(null)).toEqual([])
  // Longer, or with more left to others, is less than what it may.
  const later = { requireExport: true, keepSeconds: 604_801, before: ['shop.audit', 'shop.more'] }
  expect(await begin(later)).not.toBeNull()
})

test('the owner allows the policies of an outbox by preparing them, and the workers of that outbox carry them out', async () => {
  await doneEvent()
  const policies = [{ name: 'all', stream: '*', keepDays: 0, action: 'delete' }] as const
  const outboxOf = (pool: pg.Pool) =>
    createOutbox({
      store: postgresStore({ pool, schema: db.schema }),
      events: defineEvents({ OrderPlaced: { stream: 'shop.order', aggregate: 'order' } }),
      retention: { policies, hour: new Date().getUTCHours() },
    })
  await expect(outboxOf(db.as.worker).retention.prepare()).rejects.toThrow(/permission denied/)
  await outboxOf(db.pool).retention.prepare()
  const outbox = outboxOf(db.as.worker)
  const refused: unknown[] = []
  await using worker = outbox.worker(
    [outbox.subscription('late', { on: { OrderPlaced: () => undefined }, startFrom: 'now' })],
    {
      housekeepingMs: 50,
      observers: [(event) => void (event.kind === 'error' && refused.push(event.error))],
    },
  )
  await worker.active()
  await eventually(
    'it is gone',
    async () => (await one(db.pool, 'select count(*)::int from outbox_event')) === 0,
  )
  expect(refused).toEqual([])
  expect(await column(db.pool, 'select operator from outbox_operator_log')).toEqual(['policy:all'])
})

test('whoever owns the tables has to ask nobody', async () => {
  await doneEvent()
  const owner = postgresStore({ pool: db.pool, schema: db.schema }).retention
  expect(await owner.beginRetention(policyOf(), 3)).not.toBeNull()
})

test('an operator carries them out by hand, a viewer looks, and a publisher does neither', async () => {
  await doneEvent()
  expect(await as('viewer').previewRetention(policyOf())).toMatchObject({ events: 1 })
  expect(await retain({ retention: as('operator') })).toEqual({ deleted: 1, archived: 0 })
  expect(await as('viewer').retentionRuns(null)).toMatchObject([{ policy: 'all', deleted: 1 }])
  for (const job of ['viewer', 'publisher'] as const) {
    await expect(as(job).beginRetention(policyOf(), null)).rejects.toThrow(/permission denied/)
  }
  expect(
    await refusal(
      db.as.worker.query(`insert into outbox_archive (schema_name, table_name) values ('a', 'b')`),
    ),
  ).toBe('42501')
})

test('a publisher is refused what was archived, without a right to look', async () => {
  const eventId = await doneEvent()
  const { retention } = postgresStore({ pool: db.pool, schema: db.schema })
  await retain({ retention }, { archive: archive() })
  expect(await refusal(insertEvent(db.as.publisher, { eventId }))).toBe('23505')
  expect(await refusal(db.as.publisher.query('select 1 from outbox_archived'))).toBe('42501')
  await insertEvent(db.as.publisher)
  expect(await one(db.pool, 'select count(*)::int from outbox_event')).toBe(1)
})
