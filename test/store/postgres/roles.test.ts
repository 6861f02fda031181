import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../../src/delivery/delivery.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { completeInTransaction } from '../../../src/store/postgres/complete-in-transaction.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { recordOnce } from '../../../src/store/postgres/record-once.ts'
import { rolesSql } from '../../../src/store/postgres/roles.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import type { SubscriptionDefinition } from '../../../src/store/subscription-store.ts'
import { onAnyClient } from '../../support/any-client.ts'
import { column, insertEvent, makeDead, one, refusal, subscribe } from './fixtures.ts'
import { createRolesDatabase, type Job, makeSchemaWithoutRoles, type RolesDatabase } from './role-fixtures.ts'

let db: RolesDatabase
/** One for all statements that are refused: they leave nothing behind. */
let untouched: RolesDatabase

beforeAll(async () => {
  untouched = await createRolesDatabase()
})
afterAll(async () => {
  await untouched.drop()
})

/** For tests that write. */
const withDatabase = (): void => {
  beforeEach(async () => {
    db = await createRolesDatabase()
  })
  afterEach(async () => {
    await db.drop()
  })
}

const refusalTo = (job: Job, sql: string): Promise<string | null> => refusal(untouched.as[job].query(sql))

describe('the roles', () => {
  withDatabase()

  test('are printed to be run again at any time, which takes back what was added by hand', async () => {
    const sql = await rolesSql({ schema: db.schema, prefix: db.schema })
    await db.pool.query(sql)
    expect(await refusal(db.as.viewer.query('select count(*) from outbox_event'))).toBeNull()
    await db.pool.query(
      `grant delete on outbox_event to ${db.schema}_publisher; grant truncate on outbox_inbox to public`,
    )
    await db.pool.query(sql)
    const rights = `select has_table_privilege($1, 'outbox_event', 'delete') or has_table_privilege($1, 'outbox_inbox', 'truncate')`
    expect(await one(db.pool, rights, [`${db.schema}_publisher`])).toBe(false)
  })

  test('cover every table, sequence and function there is', async () => {
    const hidden = await column(
      db.pool,
      `select c.relname from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p', 'v')
          and not has_table_privilege($2, c.oid, 'select')`,
      [db.schema, `${db.schema}_viewer`],
    )
    expect(hidden).toEqual([])
    const open = await column(
      db.pool,
      `select p.oid::regprocedure::text from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        where p.pronamespace = $1::regnamespace and a.grantee = 0
       union all
       select c.relname from pg_class c, aclexplode(c.relacl) a where c.relnamespace = $1::regnamespace and a.grantee = 0`,
      [db.schema],
    )
    expect(open).toEqual([])
  })

  test('without the roles, too, nobody but the owner may call what runs with its rights', async () => {
    const bare = await makeSchemaWithoutRoles(db)
    for (const call of [`outbox_forget('{}')`, `outbox_retry(1, 'x')`, `outbox_resolve(1, 'x')`]) {
      expect(await refusal(db.as.viewer.query(`select ${bare}.${call}`))).toBe('42501')
    }
    const open = await column(
      db.pool,
      `select p.proname::text from pg_proc p
        where p.pronamespace = $1::regnamespace and has_function_privilege($2, p.oid, 'execute') order by 1`,
      [bare, db.login('viewer')],
    )
    const harmless = ['key_of', 'lane_of', 'matches', 'may_be_archived', 'publish', 'uuid_v7']
    expect(open).toEqual(harmless.map((name) => `outbox_${name}`))
  })

  test('take odd names', async () => {
    const sql = await rolesSql({ schema: db.schema, prefix: `${db.schema}"'\\ 역할` })
    await db.pool.query(sql)
    const names = await column<string>(db.pool, 'select rolname from pg_roles where rolname like $1', [
      `${db.schema}"%`,
    ])
    expect(names).toHaveLength(4)
    const quoted = names.map((name) => `"${name.replaceAll('"', '""')}"`).join(', ')
    await db.pool.query(`drop owned by ${quoted}; drop role ${quoted}`)
  })
})

describe('a worker', () => {
  withDatabase()

  const definition = (name: string, orderBy: 'none' | 'aggregate'): SubscriptionDefinition => ({
    name,
    streams: ['shop.*'],
    eventTypes: null,
    orderBy,
    lanes: orderBy === 'none' ? 0 : 4,
    onDead: 'block',
    maxAttempts: 3,
    startFrom: 'now',
  })
  const failure = { code: 'BOOM', message: 'it failed' }
  const leaseMs = 60_000

  test('can do its whole job: register, join, claim, extend, settle, recover, report, leave', async () => {
    const store = new PostgresWorkerStore({ pool: db.as.worker, own: false }, db.quoted, systemClock)
    await store.assertReady()
    const plain = await store.register(definition('plain', 'none'))
    const ordered = await store.register({ ...definition('ordered', 'aggregate'), startFrom: 'beginning' })
    await store.register({ ...definition('plain', 'none'), streams: ['shop.*', 'more'], maxAttempts: 5 })
    while ((await store.advanceJoining()).length > 0);
    for (const aggregateId of ['1', '2', '3']) await insertEvent(db.pool, { aggregateId })
    await insertEvent(db.pool, { stream: 'unknown' })

    const claimed = await store.claim({ subscriptionId: plain.id, workerId: 'w', limit: 10, leaseMs })
    const [first, second, third] = claimed as [ClaimedDelivery, ClaimedDelivery, ClaimedDelivery]
    const beat = { workerId: 'w', subscriptionIds: [plain.id, ordered.id], host: 'h', pid: 1, leaseMs }
    expect(await store.heartbeat({ ...beat, deliveries: claimed, lanes: [] })).toMatchObject({
      lostDeliveries: [],
    })
    const report = await store.settle([
      { delivery: first, settlement: { kind: 'done' }, durationMs: 1 },
      { delivery: second, settlement: { kind: 'retry', delayMs: 0, failure }, durationMs: 1 },
      { delivery: third, settlement: { kind: 'dead', failure }, durationMs: 1 },
    ])
    expect(report).toMatchObject({ lost: [], dead: [{ errorCode: 'BOOM' }] })

    const { taken } = await store.takeLanes({ subscriptionId: ordered.id, workerId: 'w', leaseMs, held: [] })
    const inLanes = await store.claimLanes({
      subscriptionId: ordered.id,
      workerId: 'w',
      limit: 10,
      leaseMs,
      lanes: taken,
    })
    expect(inLanes).toHaveLength(3)
    await store.unpark(ordered.id, [{ lane: 0, key: 'order:1', most: 1 }])
    await store.releaseLanes(ordered.id, 'w', taken)
    await store.claimSuspects({ subscriptionId: plain.id, workerId: 'w', limit: 1, leaseMs })
    await store.recover([plain.id, ordered.id])
    expect(await store.takeUnmatched(10, true)).toHaveLength(1)
    await store.leave('w')
    await store.register({ ...definition('ordered', 'aggregate'), streams: ['*'] })
    await db.pool.query(`select outbox_retire('plain', 'kim', discard => true)`)
    await store.openTransaction()
    while ((await store.advanceJoining()).length > 0);
  })

  test('can record in the inbox and complete in a transaction', async () => {
    const subscriptionId = await subscribe(db)
    const eventId = await insertEvent(db.pool)
    const claim = `update outbox_delivery set status = 'PROCESSING', fresh = false, locked_by = 'w', locked_until = now(), lease_token = 1`
    await db.as.worker.query(claim)
    const position = await one<string>(db.pool, 'select id from outbox_delivery')
    const lease = { token: '1', workerId: 'w' }
    const delivery = { subscriptionId, lane: 0, position, lease, event: { eventId } } as ClaimedDelivery
    expect(await recordOnce(onAnyClient(db.as.worker), db.quoted, 'sub', eventId)).toBe(true)
    expect(await recordOnce(onAnyClient(db.as.worker), db.quoted, 'sub', eventId)).toBe(false)
    await completeInTransaction(onAnyClient(db.as.worker), db.quoted, delivery)
    expect(await one(db.pool, 'select status from outbox_delivery')).toBe('DONE')
  })

  test('E12 cannot bring a DEAD delivery back, whatever it sets', async () => {
    await subscribe(db)
    await makeDead(db, { eventId: await insertEvent(db.pool) })
    const revive = `set commitpost.redriving = 'on'; update outbox_delivery set status = 'PENDING', fresh = true`
    expect(await refusal(db.as.worker.query(revive))).toBe('55000')
  })
})

describe('an operator', () => {
  withDatabase()

  test('reads, retries, resolves, pauses and retires', async () => {
    await subscribe(db)
    const letters: string[] = []
    for (let n = 0; n < 2; n += 1) {
      letters.push((await makeDead(db, { eventId: await insertEvent(db.pool) })).letterId)
    }
    const store = postgresStore({ pool: db.as.operator, schema: db.schema })
    expect(await store.listDeadLetters({})).toHaveLength(2)
    await store.retryDeadLetter(letters[0] as string, 'kim', null)
    await store.resolveDeadLetter(letters[1] as string, 'kim', 'by phone')
    await store.setPaused('sub', true, 'kim')
    expect(await store.subscriptionStatuses()).toMatchObject([
      { paused: true, counts: { PENDING: 1, DEAD: 1 } },
    ])
    await store.retireSubscription('sub', { operator: 'kim', note: null, discard: true, force: false })
    const acts = await column(db.pool, 'select action from outbox_operator_log order by id')
    expect(acts).toEqual(['retry', 'resolve', 'pause', 'retire'])
  })
})

describe('a viewer', () => {
  withDatabase()

  test('reads everything the tools show', async () => {
    await subscribe(db)
    await makeDead(db, { eventId: await insertEvent(db.pool) })
    const store = postgresStore({ pool: db.as.viewer, schema: db.schema })
    expect(await store.listDeadLetters({})).toHaveLength(1)
    expect(await store.subscriptionStatuses()).toHaveLength(1)
    expect(await store.countEvents()).toBe(1)
  })
})

describe('a worker cannot', () => {
  test.each([
    `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload) values ('a', 'b', 'c', '1', '{}')`,
    `update outbox_event set payload = '{}'`,
    'delete from outbox_event',
    'delete from outbox_delivery',
    'truncate outbox_delivery',
    `update outbox_delivery set event_id = gen_random_uuid()`,
    'update outbox_delivery set id = 5',
    `update outbox_delivery set ordering_key = 'x'`,
    'update outbox_delivery set max_attempts = 99',
    `insert into outbox_delivery (subscription_id, lane, id, event_id, max_attempts, status, processed_at)
       values (1, 0, 9, gen_random_uuid(), 1, 'DONE', now())`,
    'update outbox_dead_letter set resolved = true',
    'delete from outbox_dead_letter',
    `select outbox_retry(1, 'worker')`,
    `select outbox_resolve(1, 'worker')`,
    `select outbox_forget('{}')`,
    `select outbox_retire('sub', 'worker')`,
    `select outbox_set_paused('sub', true, 'worker')`,
    `select outbox_discard(s, '') from outbox_subscription s`,
    `update outbox_subscription set paused_at = now(), paused_by = 'worker'`,
    `update outbox_subscription set order_by = 'none'`,
    'delete from outbox_subscription',
    `insert into outbox_operator_log (operator, action, target, affected) values ('w', 'retry', '{}', 1)`,
    'select * from outbox_operator_log',
    'delete from outbox_inbox',
    `select setval('outbox_event_id_seq', 1)`,
    `select nextval('outbox_event_id_seq')`,
    `select setval('outbox_lease_token', 1)`,
  ])('%s', async (sql) => {
    expect(await refusalTo('worker', sql)).toBe('42501')
  })
})

describe('an operator cannot', () => {
  test.each([
    `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload) values ('a', 'b', 'c', '1', '{}')`,
    `update outbox_delivery set status = 'PENDING'`,
    'update outbox_dead_letter set resolved = true',
    'delete from outbox_dead_letter',
    `update outbox_operator_log set operator = 'lee'`,
    'delete from outbox_operator_log',
    'truncate outbox_operator_log',
    `insert into outbox_operator_log (at, operator, action, target, affected) values ('2000-01-01', 'k', 'x', '{}', 1)`,
    'update outbox_subscription set max_attempts = 1',
    `update outbox_subscription set paused_at = now(), paused_by = 'kim'`,
    `select outbox_forget('{}')`,
    `select outbox_close_dead_letter(1, 'kim', null, 'retry')`,
    `select outbox_discard(s, '') from outbox_subscription s`,
  ])('%s', async (sql) => {
    expect(await refusalTo('operator', sql)).toBe('42501')
  })
})

describe('a viewer cannot', () => {
  test.each([
    `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload) values ('a', 'b', 'c', '1', '{}')`,
    `update outbox_delivery set status = 'PENDING'`,
    `update outbox_subscription set paused_at = now(), paused_by = 'v'`,
    `insert into outbox_inbox (subscription, event_id) values ('s', gen_random_uuid())`,
    `insert into outbox_operator_log (operator, action, target, affected) values ('v', 'x', '{}', 1)`,
    `select outbox_retry(1, 'v')`,
    `select outbox_resolve(1, 'v')`,
    `select outbox_forget('{}')`,
    `select outbox_retire('sub', 'v')`,
    `select outbox_set_paused('sub', true, 'v')`,
    `select outbox_close_retired()`,
    `select nextval('outbox_lease_token')`,
    'lock table outbox_delivery in share mode',
  ])('%s', async (sql) => {
    expect(await refusalTo('viewer', `begin; ${sql}; rollback`)).toBe('42501')
  })
})

describe('the setting that opens the door for retention', () => {
  const opened = `begin; set local commitpost.retaining = 'on'; delete from outbox_event`
  test.each(['publisher', 'worker', 'operator', 'viewer'] as const)(
    'opens nothing for the %s',
    async (job) => {
      expect(await refusalTo(job, opened)).toBe('42501')
    },
  )
})
