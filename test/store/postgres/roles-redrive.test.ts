import { afterEach, beforeEach, expect, test } from 'vitest'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { recordLeases } from '../../support/leases.ts'
import { column, insertEvent, makeDead, one, refusal, subscribe } from './fixtures.ts'
import { createRolesDatabase, type RolesDatabase } from './role-fixtures.ts'

let db: RolesDatabase

beforeEach(async () => {
  db = await createRolesDatabase()
})
afterEach(async () => {
  await db.drop()
})

const deadLetter = async (held = false, aggregateId = '1'): Promise<string> => {
  const eventId = await insertEvent(db.pool, { aggregateId })
  return (await makeDead(db, { eventId, held })).letterId
}

const logged = (): Promise<unknown[]> =>
  column(
    db.pool,
    `select operator || ' ' || action || ' ' || affected || coalesce(' ' || note, '') from outbox_operator_log order by id`,
  )

test('E12 an operator with psql alone retries and resolves, by name', async () => {
  await subscribe(db)
  const psql = db.as.operator
  const first = await deadLetter()
  const second = await deadLetter()
  expect(await one(psql, `select outbox_retry(${first}, 'kim', 'mailbox exists now')`)).toBe(true)
  expect(await one(psql, `select outbox_resolve(${second}, 'kim')`)).toBe(true)
  expect(await refusal(psql.query(`select outbox_retry(${first}, 'kim')`))).toBe('55000')
  expect(await refusal(psql.query(`select outbox_retry(404, 'kim')`))).toBe('P0002')
  expect(await refusal(psql.query(`select outbox_resolve(404, '  ')`))).toBe('22023')
  expect(await column(psql, 'select status from outbox_delivery order by id')).toEqual(['PENDING', 'DEAD'])
  expect(await logged()).toEqual(['kim retry 1 mailbox exists now', 'kim resolve 1'])
})

test('E12 D8 an operator with psql alone plans, applies and cancels', async () => {
  await subscribe(db)
  const psql = db.as.operator
  for (const _ of [1, 2, 3]) await deadLetter()
  const plan = await one<string>(psql, `select outbox_plan_redrive('{"subscription": "sub"}')`)
  expect(await refusal(psql.query(`select outbox_plan_redrive('{"subscripton": "sub"}')`))).toBe('22023')
  expect(await refusal(psql.query(`select outbox_plan_redrive('{"subscription": "nobody"}')`))).toBe('P0002')
  expect(await refusal(psql.query(`select outbox_begin_redrive(${plan}, ' ')`))).toBe('22023')
  expect(await one(psql, `select outbox_begin_redrive(${plan}, 'kim', at_once => 2)`)).toBe('applying')
  expect(await one(psql, `select driven from outbox_step_redrive(${plan}, 'kim', 'back')`)).toBe(2)
  expect(await one(psql, `select outbox_cancel_redrive(${plan}, 'lee', 'enough')`)).toBe(true)
  expect(await one(psql, `select plan_state from outbox_step_redrive(${plan}, 'kim')`)).toBe('cancelled')
  expect(await logged()).toEqual([
    'kim retry 1 back',
    'kim retry 1 back',
    'kim redrive 2 back',
    'lee redrive-cancel 1 enough',
  ])
})

test('E12 an operator with psql alone moves a blocked key aside', async () => {
  await subscribe(db, { orderBy: 'aggregate' })
  await deadLetter(true)
  for (const _ of [1, 2, 3]) await insertEvent(db.pool)
  const move = `select moved, free from outbox_move_aside('sub', 'order:1', 'kim', 'poison', 2)`
  expect((await db.as.operator.query(move)).rows).toEqual([{ moved: 2, free: false }])
  expect((await db.as.operator.query(move)).rows).toEqual([{ moved: 1, free: true }])
  expect(await refusal(db.as.operator.query(move))).toBe('55000')
  expect(await column(db.pool, 'select distinct status || held from outbox_delivery')).toEqual(['DEADfalse'])
  expect(await column(db.pool, 'select error_code from outbox_dead_letter order by position')).toEqual([
    'BOOM',
    'MOVED_ASIDE',
    'MOVED_ASIDE',
    'MOVED_ASIDE',
  ])
  expect(await logged()).toEqual(['kim move-aside 2 poison', 'kim move-aside 1 poison'])
})

test('what is in hand or locked keeps a key from being free, and is waited for by nobody', async () => {
  const id = await subscribe(db, { orderBy: 'aggregate' })
  await deadLetter(true)
  const inHand = await insertEvent(db.pool)
  const locked = await insertEvent(db.pool)
  await db.pool.query(
    `update outbox_delivery set status = 'PROCESSING', fresh = false, locked_by = 'w', locked_until = now() + interval '1 hour',
            lease_token = nextval('outbox_lease_token'), attempt_count = 1 where event_id = $1`,
    [inHand],
  )
  await recordLeases(db.pool)
  const store = postgresStore({ pool: db.as.operator, schema: db.schema })
  const move = (): Promise<unknown> => store.moveAside('sub', 'order:1', 'kim', null)
  const holder = await db.pool.connect()
  await holder.query('begin')
  await holder.query('select 1 from outbox_delivery where event_id = $1 for update', [locked])
  expect(await move()).toEqual({ moved: 0, free: false })
  await holder.query('rollback')
  holder.release()
  expect(await move()).toEqual({ moved: 1, free: false })
  // Its worker gives it back, as it does with what stands behind a dead letter.
  await db.pool.query(
    `update outbox_delivery set status = 'PENDING', fresh = false, held = true, next_retry_at = 'infinity', locked_by = null,
            locked_until = null, lease_token = null, attempt_count = 0 where event_id = $1`,
    [inHand],
  )
  expect(await move()).toEqual({ moved: 1, free: true })
  expect(
    await one(db.pool, 'select count(*)::int from outbox_delivery where held and subscription_id = $1', [id]),
  ).toBe(0)
})

test('no policy undoes what a person decided, whatever codes it names', async () => {
  const id = await subscribe(db, { orderBy: 'aggregate' })
  await deadLetter(true)
  for (const _ of [1, 2]) await insertEvent(db.pool)
  await db.as.operator.query(`select outbox_move_aside('sub', 'order:1', 'kim')`)
  const byPolicy = (codes: string, patterns: string): Promise<unknown> =>
    one(
      db.as.worker,
      `select redriven from outbox_redrive_by_policy(${id}, 'all', '${codes}', '${patterns}', 0, 2, 9)`,
    )
  expect(await byPolicy('{MOVED_ASIDE}', '{MOVED%}')).toBe(0)
  await db.pool.query(
    `update outbox_dead_letter set redrive_at = clock_timestamp() where error_code = 'MOVED_ASIDE'`,
  )
  expect(await byPolicy('{MOVED_ASIDE}', '{MOVED%}')).toBe(0)
  await db.pool.query(`update outbox_dead_letter set redrive_at = null where error_code = 'MOVED_ASIDE'`)
  expect(await byPolicy('{}', '{%}')).toBe(1)
  expect(
    await column(db.pool, 'select error_code from outbox_dead_letter where not resolved order by id'),
  ).toEqual(['MOVED_ASIDE', 'MOVED_ASIDE'])
})

test('only a worker re-drives by policy, and a worker decides on nothing else', async () => {
  const id = await subscribe(db)
  const letterId = await deadLetter()
  const byPolicy = `select redriven from outbox_redrive_by_policy(${id}, 'transient', '{BOOM}', '{}', 0, 2, 1)`
  for (const job of ['publisher', 'operator', 'viewer'] as const) {
    expect(await refusal(db.as[job].query(byPolicy))).toBe('42501')
  }
  const acts = [
    `outbox_retry(${letterId}, 'x')`,
    `outbox_plan_redrive('{}')`,
    `outbox_begin_redrive(1, 'x')`,
    `outbox_step_redrive(1, 'x')`,
    `outbox_cancel_redrive(1, 'x')`,
    `outbox_move_aside('sub', 'k', 'x')`,
  ]
  for (const act of acts) {
    for (const job of ['publisher', 'worker', 'viewer'] as const) {
      expect(await refusal(db.as[job].query(`select ${act}`))).toBe('42501')
    }
  }
  const forged = `update outbox_delivery set status = 'DEAD', fresh = false, held = false, last_error_code = 'X'`
  await insertEvent(db.pool)
  expect(await refusal(db.as.worker.query(`${forged} where status = 'PENDING'`))).toBe('55000')
  expect(
    await refusal(db.as.worker.query('update outbox_dead_letter set moved_xid = pg_current_xact_id()')),
  ).toBe('42501')
  expect(await one(db.as.worker, byPolicy)).toBe(1)
  expect(await logged()).toEqual(['policy:transient retry 1'])
})
