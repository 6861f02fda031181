import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findDeadLetter } from '../../../src/store/postgres/find-dead-letter.ts'
import { redriveByPolicy } from '../../../src/store/postgres/redrive-by-policy.ts'
import type { PolicyRedrive, PolicyReport } from '../../../src/store/redrive-store.ts'
import {
  column,
  createOutboxDatabase,
  inRolledBack,
  insertEvent,
  makeDead,
  type OutboxDatabase,
  one,
  subscribe,
} from './fixtures.ts'

const HOUR = 3_600_000
const POLICY: PolicyRedrive = {
  name: 'transient',
  codes: ['BUSY', 'AWAY'],
  afterMs: HOUR,
  factor: 2,
  atMost: 2,
}
let db: OutboxDatabase
let subscriptionId: number

beforeEach(async () => {
  db = await createOutboxDatabase()
  subscriptionId = await subscribe(db, { orderBy: 'aggregate', onDead: 'continue' })
})
afterEach(async () => {
  await db.drop()
})

const byPolicy = (policy: Partial<PolicyRedrive> = {}): Promise<PolicyReport> =>
  redriveByPolicy(db.pool, db.quoted, subscriptionId, { ...POLICY, ...policy })

/** Dead letters of one key, with these codes. Returns their ids, in order. */
async function dead(...codes: readonly string[]): Promise<readonly string[]> {
  const ids: string[] = []
  for (const code of codes) {
    const eventId = await insertEvent(db.pool)
    ids.push((await makeDead(db, { eventId, code })).letterId)
  }
  return ids
}

/** Lets the time of these be over, on the database's clock. */
const passTime = (...letterIds: readonly (string | undefined)[]): Promise<unknown> =>
  db.pool.query(
    'update outbox_dead_letter set redrive_at = clock_timestamp() where id = any ($1::bigint[])',
    [letterIds],
  )

const redriven = (): Promise<string[]> =>
  column(db.pool, 'select id::text from outbox_dead_letter where resolved order by id')

const NOTHING: PolicyReport = { redriven: 0, leftToPerson: 0 }

describe('D8 of one key a policy lets nothing go before an earlier one that will go', () => {
  test('although the later ones are due and the first is not', async () => {
    const [first, ...later] = await dead('BUSY', 'BUSY', 'AWAY', 'BUSY')
    await byPolicy()
    await passTime(...later)
    expect(await byPolicy()).toEqual(NOTHING)
    await passTime(first)
    for (const expected of [first, ...later]) {
      expect(await byPolicy()).toEqual({ redriven: 1, leftToPerson: 0 })
      expect((await redriven()).at(-1)).toBe(expected)
    }
  })

  test('nor before one that the policy has not come to look at', async () => {
    const [first, second] = await dead('BUSY', 'BUSY')
    await inRolledBack(db, async (holder) => {
      await holder.query('select 1 from outbox_dead_letter where id = $1 for update', [first])
      expect(await byPolicy({ afterMs: 0 })).toEqual(NOTHING)
    })
    for (const expected of [[first], [first, second]]) {
      await byPolicy({ afterMs: 0 })
      expect(await redriven()).toEqual(expected)
    }
  })

  test('other keys go on meanwhile', async () => {
    await dead('BUSY')
    const { letterId } = await makeDead(db, {
      eventId: await insertEvent(db.pool, { aggregateId: '2' }),
      code: 'BUSY',
    })
    await byPolicy()
    await passTime(letterId)
    expect(await byPolicy()).toEqual({ redriven: 1, leftToPerson: 0 })
    expect(await redriven()).toEqual([letterId])
  })
})

describe('D8 of one key nothing waits for an earlier one that will not go', () => {
  test('because its code is not named any more', async () => {
    const [, second] = await dead('AWAY', 'BUSY')
    await byPolicy()
    await passTime(second)
    expect(await byPolicy()).toEqual(NOTHING)
    expect(await byPolicy({ codes: ['BUSY'] })).toEqual({ redriven: 1, leftToPerson: 0 })
    expect(await redriven()).toEqual([second])
  })

  test.each([
    ['its code was never named', 'OTHER', null],
    ['a person decided on it', 'MOVED_ASIDE', null],
    ['it was given up', 'BUSY', 'infinity'],
  ])('because %s', async (_, code, redriveAt) => {
    const [first, second] = await dead(code, 'BUSY')
    await db.pool.query('update outbox_dead_letter set redrive_at = $1 where id = $2', [redriveAt, first])
    expect(await byPolicy({ afterMs: 0, codes: ['BUSY', 'MOVED*'] })).toMatchObject({ redriven: 1 })
    expect(await redriven()).toEqual([second])
  })
})

test('D2 D8 a dead letter says when its policy delivers it again, while nobody has decided on it', async () => {
  const [id = ''] = await dead('BUSY')
  const redriveAt = async (at: string): Promise<unknown> => {
    await db.pool.query('update outbox_dead_letter set redrive_at = $1', [at])
    return (await findDeadLetter(db.pool, db.quoted, id))?.redriveAt
  }
  expect((await findDeadLetter(db.pool, db.quoted, id))?.redriveAt).toBeNull()
  expect(await redriveAt('2030-01-02T03:04:05Z')).toEqual(new Date('2030-01-02T03:04:05Z'))
  expect(await redriveAt('infinity')).toBe('never')
  await db.pool.query(`select outbox_resolve($1, 'kim')`, [id])
  expect(await redriveAt('infinity')).toBeNull()
})

test('a key with many that stay and many that are due is read a few times, not once for each', async () => {
  await db.pool.query(
    `insert into outbox_dead_letter (subscription, subscription_id, lane, ordering_key, position, event_id, stream,
            event_type, schema_version, aggregate_type, aggregate_id, payload, headers, occurred_at, error_code,
            error_message, retry_count, redrive_at)
     select 'sub', $1, 0, 'order:1', n, gen_random_uuid(), 'shop.order', 'OrderPlaced', 1, 'order', '1', '{}', '{}',
            now(), 'BUSY', 'it failed', 0, case when n <= 1000 then 'infinity' else clock_timestamp() end
       from generate_series(1, 2000) n`,
    [subscriptionId],
  )
  await db.pool.query('analyze outbox_dead_letter')
  await inRolledBack(db, async (client) => {
    const left = `select left_to_person from outbox_redrive_by_policy($1, 'transient', '{BUSY}', '{}', 0, 2, 2)`
    expect(await one(client, left, [subscriptionId])).toBe(1)
    const read = `select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = 'outbox_dead_letter'`
    expect(Number(await one(client, read))).toBeLessThan(20_000)
  })
})

test('D8 however often resolved letters are purged, a policy tries no more often than it may', async () => {
  const eventId = await insertEvent(db.pool)
  const purge = (): Promise<number[]> => column(db.pool, `select outbox_purge('0', 'kim')`)
  for (const goes of [1, 1, 0]) {
    await makeDead(db, { eventId, code: 'BUSY' })
    // While it waits for its policy, and while it is on its way again.
    expect(await purge()).toEqual([0])
    expect(await byPolicy({ afterMs: 0 })).toEqual({ redriven: goes, leftToPerson: 1 - goes })
    expect(await purge()).toEqual([0])
  }
  await db.pool.query(`select outbox_resolve(id, 'kim') from outbox_dead_letter where not resolved`)
  expect(await purge()).toEqual([3])
})

test('D3 what a policy re-drove is purged once it was delivered', async () => {
  await dead('BUSY')
  await byPolicy({ afterMs: 0 })
  await db.pool.query(
    `update outbox_delivery set status = 'PROCESSING', held = false, next_retry_at = null, attempt_count = 1,
            locked_by = 'w1', locked_until = now() + interval '1 minute', lease_token = nextval('outbox_lease_token')`,
  )
  await db.pool.query(
    `update outbox_delivery set status = 'DONE', locked_by = null, locked_until = null, lease_token = null,
            processed_at = now()`,
  )
  expect(await column(db.pool, `select outbox_purge('0', 'kim')`)).toEqual([1])
})
