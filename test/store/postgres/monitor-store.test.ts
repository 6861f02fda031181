import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { AlarmState, FiguresRequest, MonitorTurn, RoundRecord } from '../../../src/store/alert-store.ts'
import { PostgresMonitorStore } from '../../../src/store/postgres/monitor-store.ts'
import { takeUnmatched } from '../../../src/store/postgres/take-unmatched.ts'
import { recordLeases } from '../../support/leases.ts'
import {
  column,
  createOutboxDatabase,
  insertEvent,
  makeDead,
  type OutboxDatabase,
  subscribe,
} from './fixtures.ts'

let db: OutboxDatabase
let store: PostgresMonitorStore

beforeEach(async () => {
  db = await createOutboxDatabase()
  store = new PostgresMonitorStore({ pool: db.pool, own: false }, db.quoted)
})
afterEach(async () => {
  await db.drop()
})

const LOOK: FiguresRequest = { most: 1_001, stuckAfterMs: 300_000, leastForMean: 3, workerMissingMs: 60_000 }
const ask = { leaseMs: 60_000, everyMs: 0, whole: true, wholeEveryMs: 3_600_000 }

const recordOf = (turn: MonitorTurn, changes: Partial<RoundRecord> = {}): RoundRecord => ({
  turn,
  alarms: [],
  forgotten: [],
  toldLetters: [],
  toldWorkers: [],
  reported: false,
  position: null,
  ...changes,
})

async function takeTurn(
  changes: Partial<typeof ask> & { readonly holder?: string } = {},
): Promise<MonitorTurn> {
  const turn = await store.takeMonitorTurn({ holder: 'w1', ...ask, ...changes })
  if (turn === null) throw new Error('somebody else has the turn')
  return turn
}

describe('the turn to look and tell', () => {
  test('is of one at a time, however many ask', async () => {
    const asking = Array.from({ length: 20 }, (_, n) => store.takeMonitorTurn({ holder: `w${n}`, ...ask }))
    const got = (await Promise.all(asking)).filter((turn) => turn !== null)
    expect(got).toHaveLength(1)
  })

  test('lapses by the clock of the database, and then what its holder told is not written', async () => {
    const lapsed = await takeTurn()
    expect(await store.takeMonitorTurn({ holder: 'w2', ...ask })).toBeNull()
    await db.pool.query(`update outbox_monitor set until = clock_timestamp() - interval '1 ms'`)
    const current = await takeTurn({ holder: 'w2' })
    const alarm: AlarmState = {
      key: 'unresolved',
      rule: 'unresolved',
      since: new Date(0),
      told: true,
      toldAt: null,
    }
    expect(await store.recordRound(recordOf(lapsed, { alarms: [alarm] }))).toBe(false)
    expect(await store.readAlarms()).toEqual([])
    expect(await store.recordRound(recordOf(current, { alarms: [alarm] }))).toBe(true)
    expect(await store.readAlarms()).toEqual([alarm])
  })

  test('one that lapsed before its holder asks again is another turn', async () => {
    const first = await takeTurn()
    await db.pool.query(`update outbox_monitor set until = clock_timestamp() - interval '1 ms'`)
    const second = await takeTurn()
    expect(await store.recordRound(recordOf(first))).toBe(false)
    expect(await store.recordRound(recordOf(second))).toBe(true)
  })

  test('is kept by whoever extends it in time, and by nobody else', async () => {
    const turn = await takeTurn()
    await db.pool.query(`update outbox_monitor set until = clock_timestamp() - interval '1 ms'`)
    expect(await store.extendMonitorTurn(turn, 60_000)).toBe(false)
    const next = await takeTurn({ holder: 'w2' })
    expect(await store.extendMonitorTurn(turn, 60_000)).toBe(false)
    expect(await store.extendMonitorTurn(next, 120_000)).toBe(true)
    const [seconds] = await column<number>(
      db.pool,
      'select extract(epoch from until - clock_timestamp())::float8 from outbox_monitor',
    )
    expect(seconds).toBeGreaterThan(60)
  })

  test('comes again only after the pause, for all workers together', async () => {
    await store.recordRound(recordOf(await takeTurn()))
    expect(await store.takeMonitorTurn({ holder: 'w2', ...ask, everyMs: 60_000 })).toBeNull()
    await db.pool.query(`update outbox_monitor set round_at = round_at - interval '1 minute'`)
    await store.recordRound(recordOf(await takeTurn({ everyMs: 60_000 })))
    // A look at dead letters is none at everything.
    await db.pool.query(`update outbox_monitor set round_at = round_at - interval '1 minute'`)
    await store.recordRound(recordOf(await takeTurn({ whole: false })))
    expect(await store.takeMonitorTurn({ holder: 'w2', ...ask, whole: false, everyMs: 10_000 })).toBeNull()
    await takeTurn({ everyMs: 60_000 })
  })

  test('is one to look at everything when that is due, whatever was asked for', async () => {
    await store.recordRound(recordOf(await takeTurn()))
    const soon = { whole: false, wholeEveryMs: 60_000 }
    const dead = await takeTurn(soon)
    expect(dead.whole).toBe(false)
    await store.recordRound(recordOf(dead))
    await db.pool.query(`update outbox_monitor set round_at = round_at - interval '1 minute'`)
    expect(await takeTurn(soon)).toMatchObject({ whole: true })
  })

  test('waits for nobody who has its row locked', async () => {
    const client = await db.pool.connect()
    await client.query('begin')
    await client.query('select from outbox_monitor for update')
    expect(await store.takeMonitorTurn({ holder: 'w1', ...ask })).toBeNull()
    await client.query('rollback')
    client.release()
  })

  test('keeps what was measured, reported and told', async () => {
    await subscribe(db)
    const { letterId } = await makeDead(db, { eventId: await insertEvent(db.pool) })
    await db.pool.query(
      `insert into outbox_worker (worker_id, subscription_ids, host, pid, until)
       values ('gone', '{}', 'h', 1, now() - interval '1 hour'), ('alive', '{}', 'h', 2, now() + interval '1 hour')`,
    )
    const turn = await takeTurn()
    expect(turn.rate).toBeNull()
    const told = { toldLetters: [letterId], toldWorkers: ['gone', 'alive'], reported: true, position: 42 }
    expect(await store.recordRound(recordOf(turn, told))).toBe(true)
    expect(await store.readUntoldLetters(10)).toEqual({ ids: [], letters: [], groups: [] })
    expect(await column(db.pool, 'select worker_id from outbox_worker')).toEqual(['alive'])
    const next = await takeTurn()
    expect(next.rate).toEqual({ position: 42, at: turn.now })
    expect(next.reportAt.getTime()).toBeGreaterThanOrEqual(turn.now.getTime())
  })
})

describe('the figures', () => {
  const set = (eventId: string, assignments: string): Promise<unknown> =>
    db.pool.query(`update outbox_delivery set ${assignments} where event_id = $1`, [eventId])

  test('tell what waits, what is late, what is dead, and who serves', async () => {
    const id = await subscribe(db, { name: 'busy' })
    await subscribe(db, { name: 'idle', eventTypes: ['Never'] })
    await subscribe(db, { name: 'over', state: 'retired' })
    const events: string[] = []
    for (let n = 0; n < 6; n += 1) events.push(await insertEvent(db.pool))
    const [late, leased, retried, suspect, dead] = events as [string, string, string, string, string, string]
    const lease = `status = 'PROCESSING', fresh = false, attempt_count = 4, locked_by = 'w', locked_until = now(), lease_token = 1`
    const free = 'locked_by = null, locked_until = null, lease_token = null'
    const held = `status = 'PENDING', fresh = false, held = true, next_retry_at = now()`
    await set(late, `created_at = now() - interval '10 minutes'`)
    for (const each of [leased, retried, suspect]) await set(each, lease)
    await set(retried, `${held}, ${free}, created_at = now() - interval '20 minutes'`)
    await set(suspect, `${held}, suspect = true, ${free}`)
    await recordLeases(db.pool)
    await makeDead(db, { eventId: dead })
    await db.pool.query(
      `insert into outbox_worker (worker_id, subscription_ids, host, pid, until)
       values ('alive', $1, 'h', 1, now() - interval '30 seconds'), ('gone', $1, 'h', 2, now() - interval '2 minutes')`,
      [[id]],
    )
    const { subscriptions, vanished, position } = await store.readFigures(LOOK)
    expect(subscriptions).toEqual([
      {
        name: 'busy',
        pausedBy: null,
        pending: 4,
        processing: 1,
        stuck: 2,
        oldestPendingSeconds: expect.any(Number) as number,
        dead: 1,
        meanRetries: (3 + 3 + 3 + 0) / 4,
        workers: 1,
        log: null,
      },
      expect.objectContaining({
        name: 'idle',
        pending: 0,
        oldestPendingSeconds: null,
        meanRetries: null,
        workers: 0,
      }),
    ])
    expect(Math.floor((subscriptions[0]?.oldestPendingSeconds ?? 0) / 60)).toBe(20)
    expect(vanished).toMatchObject([{ workerId: 'gone', host: 'h', pid: 2, subscriptions: ['busy'] }])
    expect(position).toBe(6)
  })

  test('of an ordered subscription come from all its lanes, and end at the limit', async () => {
    await subscribe(db, { orderBy: 'aggregate' })
    for (let n = 0; n < 40; n += 1) await insertEvent(db.pool, { aggregateId: String(n) })
    await db.pool.query(`update outbox_delivery set created_at = now() - interval '1 hour' where id > 20`)
    expect((await store.readFigures(LOOK)).subscriptions).toMatchObject([{ pending: 40, stuck: 20 }])
    expect((await store.readFigures({ ...LOOK, most: 7 })).subscriptions).toMatchObject([{ pending: 7 }])
  })

  test('of a database without events are nothing', async () => {
    expect(await store.readFigures(LOOK)).toEqual({ subscriptions: [], vanished: [], position: 0 })
    expect(await store.readOpenLetters(10)).toEqual({ count: 0, byType: [], oldest: null })
  })
})

describe('dead letters', () => {
  const die = async (count: number, type: string): Promise<string[]> => {
    const ids: string[] = []
    for (let n = 0; n < count; n += 1) {
      ids.push((await makeDead(db, { eventId: await insertEvent(db.pool, { type }) })).letterId)
    }
    return ids
  }

  test('that are open are counted by type, with the oldest', async () => {
    await subscribe(db)
    const [first] = await die(2, 'OrderPlaced')
    await die(3, 'OrderPaid')
    expect(await store.readOpenLetters(100)).toMatchObject({
      count: 5,
      byType: [
        { eventType: 'OrderPaid', count: 3 },
        { eventType: 'OrderPlaced', count: 2 },
      ],
      oldest: {
        id: first,
        eventType: 'OrderPlaced',
        subscription: 'sub',
        failedAt: expect.any(Date) as Date,
      },
    })
    expect(await store.readOpenLetters(4)).toMatchObject({ count: 4 })
  })

  test('nobody was told of are given one by one, and in groups where they are many', async () => {
    await subscribe(db)
    const ids = await die(3, 'OrderPlaced')
    const apart = await store.readUntoldLetters(3)
    expect(apart).toMatchObject({ ids, groups: [] })
    expect(apart.letters[0]).toMatchObject({ id: ids[0], errorMessage: 'it failed', payload: { total: 1 } })
    ids.push(...(await die(2, 'OrderPaid')))
    const together = await store.readUntoldLetters(3)
    expect(together.letters).toEqual([])
    expect(together.ids.toSorted()).toEqual(ids.toSorted())
    expect(together.groups).toEqual([
      { subscription: 'sub', eventType: 'OrderPlaced', errorCode: 'BOOM', count: 3 },
      { subscription: 'sub', eventType: 'OrderPaid', errorCode: 'BOOM', count: 2 },
    ])
  })

  test('that cannot be delivered again are told apart', async () => {
    const eventTypes = ['OrderPlaced']
    const over = await subscribe(db, { name: 'over', eventTypes })
    await die(1, 'OrderPlaced')
    await db.pool.query(
      `update outbox_subscription set state = 'retired', retired_at = now(), retired_by = 'kim' where id = $1`,
      [over],
    )
    await subscribe(db, { eventTypes })
    await die(1, 'OrderPlaced')
    await insertEvent(db.pool, { type: 'Nobodys' })
    expect(await takeUnmatched(db.pool, db.quoted, 10, true)).toHaveLength(1)
    const { letters } = await store.readUntoldLetters(10)
    expect(letters.map(({ subscription, undeliverable }) => [subscription, undeliverable])).toEqual([
      ['over', 'retired'],
      ['sub', null],
      ['(none)', 'unmatched'],
    ])
  })

  test('that a person decided on, or that somebody has locked, do not hold up what was told', async () => {
    await subscribe(db)
    const [resolved, locked, free] = (await die(3, 'OrderPlaced')) as [string, string, string]
    await db.pool.query(`select outbox_resolve($1, 'kim')`, [resolved])
    expect((await store.readUntoldLetters(10)).ids).toEqual([locked, free])
    const client = await db.pool.connect()
    await client.query('begin')
    await client.query('select from outbox_dead_letter where id = $1 for update', [locked])
    await store.recordRound(recordOf(await takeTurn(), { toldLetters: [locked, free] }))
    await client.query('rollback')
    client.release()
    expect((await store.readUntoldLetters(10)).ids).toEqual([locked])
  })
})

test('dead letters from before the migration count as told', async () => {
  const { rows } = await db.pool.query(
    `select column_default from information_schema.columns
      where table_schema = $1 and table_name = 'outbox_dead_letter' and column_name = 'told_at'`,
    [db.schema],
  )
  expect(rows).toEqual([{ column_default: null }])
})
