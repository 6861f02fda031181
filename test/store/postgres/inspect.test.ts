import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { closeDeadLetter } from '../../../src/store/postgres/close-dead-letter.ts'
import { countEvents } from '../../../src/store/postgres/count-events.ts'
import { setPaused } from '../../../src/store/postgres/set-paused.ts'
import { subscriptionStatuses } from '../../../src/store/postgres/subscription-statuses.ts'
import { eventually } from '../../support/program.ts'
import { createOutboxDatabase, insertEvent, makeDead, type OutboxDatabase, subscribe } from './fixtures.ts'

let db: OutboxDatabase

beforeEach(async () => {
  db = await createOutboxDatabase()
})
afterEach(async () => {
  await db.drop()
})

describe('the status of subscriptions', () => {
  test('what is parked behind another of its key waits, and is not a retry', async () => {
    await subscribe(db, { name: 'ordered', orderBy: 'aggregate' })
    await insertEvent(db.pool)
    await db.pool.query(`update outbox_delivery set fresh = false, held = true, next_retry_at = 'infinity'`)
    const [ordered] = await subscriptionStatuses(db.pool, db.quoted)
    expect(ordered).toMatchObject({ counts: { PENDING: 1 }, retrying: 0 })
  })

  test('counts deliveries by status, retries, dead letters and the oldest one that waits', async () => {
    await subscribe(db, { name: 'busy' })
    await subscribe(db, { name: 'idle', eventTypes: ['Never'], orderBy: 'total', state: 'joining' })
    const ids: string[] = []
    for (let n = 0; n < 7; n += 1) ids.push(await insertEvent(db.pool))
    const set = (n: number, assignments: string): Promise<unknown> =>
      db.pool.query(`update outbox_delivery set ${assignments} where event_id = $1`, [ids[n]])
    const leased = `status = 'PROCESSING', fresh = false, attempt_count = 1, locked_by = 'w', locked_until = now(), lease_token = 1`
    const free = 'locked_by = null, locked_until = null, lease_token = null'
    await set(0, `created_at = now() - interval '90 seconds'`)
    await set(1, leased)
    await set(2, leased)
    await set(2, `status = 'DONE', processed_at = now(), created_at = now() - interval '1 day', ${free}`)
    await set(3, leased)
    await set(3, `status = 'PENDING', fresh = false, held = true, next_retry_at = now(), ${free}`)
    const { letterId } = await makeDead(db, { eventId: ids[4] as string })
    await makeDead(db, { eventId: ids[5] as string })
    await closeDeadLetter(db.pool, db.quoted, 'resolve', letterId, 'kim', null)

    const [busy, idle, ...others] = await subscriptionStatuses(db.pool, db.quoted)
    expect(others).toEqual([])
    expect(busy).toEqual({
      name: 'busy',
      state: 'active',
      paused: false,
      orderBy: 'none',
      counts: { PENDING: 3, PROCESSING: 1, DONE: 1, DEAD: 2 },
      pendingCapped: false,
      retrying: 1,
      oldestPendingSeconds: expect.any(Number),
      unresolvedDeadLetters: 1,
      waitsFor: null,
    })
    expect(busy?.oldestPendingSeconds).toBeGreaterThanOrEqual(90)
    expect(busy?.oldestPendingSeconds).toBeLessThan(120)
    expect(idle).toEqual({
      name: 'idle',
      state: 'joining',
      paused: false,
      orderBy: 'total',
      counts: { PENDING: 0, PROCESSING: 0, DONE: 0, DEAD: 0 },
      pendingCapped: false,
      retrying: 0,
      oldestPendingSeconds: null,
      unresolvedDeadLetters: 0,
      waitsFor: null,
    })
    expect(await countEvents(db.pool, db.quoted)).toBe(7)
  })

  test('names the transaction that a joining subscription waits for', async () => {
    await subscribe(db, { state: 'joining' })
    const client = await db.pool.connect()
    const name = `${db.schema} report`
    await client.query(`set application_name = '${name}'`)
    await client.query('begin')
    const { rows } = await client.query('select pg_backend_pid() as pid, pg_current_xact_id()')
    await db.pool.query('update outbox_subscription set barrier = pg_current_xact_id()')
    // Others on this server may have older ones.
    await eventually(
      'it is the oldest',
      async () => {
        const [status] = await subscriptionStatuses(db.pool, db.quoted)
        return status?.waitsFor?.name === name
      },
      20_000,
    )
    const [status] = await subscriptionStatuses(db.pool, db.quoted)
    expect(status?.waitsFor).toEqual({ pid: rows[0]?.pid, name, seconds: expect.any(Number) })
    await client.query('rollback')
    client.release(true)
  })

  test('is empty where nothing is', async () => {
    expect(await subscriptionStatuses(db.pool, db.quoted)).toEqual([])
    expect(await countEvents(db.pool, db.quoted)).toBe(0)
  })
})

describe('pausing', () => {
  const pause = (paused: boolean, operator = 'kim', name = 'sub'): ReturnType<typeof setPaused> =>
    setPaused(db.pool, db.quoted, name, paused, operator, 'why')

  test('is recorded with the operator, and so is resuming', async () => {
    await subscribe(db)
    expect(await pause(true)).toMatchObject({ name: 'sub', paused: true })
    const { rows } = await db.pool.query(
      'select paused_by, paused_at is not null as since from outbox_subscription',
    )
    expect(rows).toEqual([{ paused_by: 'kim', since: true }])
    expect((await subscriptionStatuses(db.pool, db.quoted))[0]).toMatchObject({ paused: true })
    expect(await pause(false, 'lee')).toMatchObject({ paused: false })
    const log = await db.pool.query(
      'select operator, action, target, affected from outbox_operator_log order by id',
    )
    const target = { subscription: 'sub' }
    expect(log.rows).toEqual([
      { operator: 'kim', action: 'pause', target, affected: 1 },
      { operator: 'lee', action: 'resume', target, affected: 1 },
    ])
  })

  test('needs a name, and a subscription', async () => {
    await subscribe(db)
    await expect(pause(true, ' ')).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    await expect(pause(true, 'kim', 'nobody')).rejects.toMatchObject({ code: 'NOT_FOUND', id: 'nobody' })
    const { rows } = await db.pool.query('select 1 from outbox_operator_log')
    expect(rows).toEqual([])
  })
})
