import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { closeDeadLetter } from '../../../src/store/postgres/close-dead-letter.ts'
import { countDeadLetters } from '../../../src/store/postgres/count-dead-letters.ts'
import { findDeadLetter } from '../../../src/store/postgres/find-dead-letter.ts'
import { listDeadLetters } from '../../../src/store/postgres/list-dead-letters.ts'
import { takeUnmatched } from '../../../src/store/postgres/take-unmatched.ts'
import {
  column,
  createOutboxDatabase,
  insertEvent,
  makeDead,
  type OutboxDatabase,
  one,
  subscribe,
} from './fixtures.ts'

let db: OutboxDatabase

beforeEach(async () => {
  db = await createOutboxDatabase()
})
afterEach(async () => {
  await db.drop()
})

const list = (query = {}): ReturnType<typeof listDeadLetters> => listDeadLetters(db.pool, db.quoted, query)
const count = (query = {}): Promise<number> => countDeadLetters(db.pool, db.quoted, query)
const find = (id: string): ReturnType<typeof findDeadLetter> => findDeadLetter(db.pool, db.quoted, id)
const retry = (id: string, operator = 'kim', note: string | null = null): Promise<void> =>
  closeDeadLetter(db.pool, db.quoted, 'retry', id, operator, note)
const resolve = (id: string, operator = 'kim', note: string | null = null): Promise<void> =>
  closeDeadLetter(db.pool, db.quoted, 'resolve', id, operator, note)

const oneDead = async (held = false): Promise<{ letterId: string; eventId: string; position: string }> => {
  const eventId = await insertEvent(db.pool)
  return { eventId, ...(await makeDead(db, { eventId, held })) }
}

describe('reading', () => {
  test('D2 a dead letter holds the event, the error, the attempts and what was decided', async () => {
    await subscribe(db, { name: 'billing', orderBy: 'aggregate' })
    const { letterId, eventId, position } = await oneDead()
    expect(await find(letterId)).toEqual({
      id: letterId,
      subscription: 'billing',
      eventId,
      position,
      stream: 'shop.order',
      eventType: 'OrderPlaced',
      schemaVersion: 1,
      aggregateType: 'order',
      aggregateId: '1',
      orderingKey: 'order:1',
      payload: { total: 1 },
      headers: {},
      occurredAt: expect.any(Date),
      reason: 'NON_RETRYABLE',
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
      errorCode: 'BOOM',
      errorMessage: 'it failed',
      attemptHistory: [
        {
          attempt: 1,
          at: '2026-01-02T03:04:05Z',
          worker: 'w1',
          durationMs: 3,
          code: 'BOOM',
          message: 'it failed',
        },
      ],
      retryCount: 0,
      failedAt: expect.any(Date),
      resolved: false,
      resolution: null,
      resolvedAt: null,
      resolvedBy: null,
      note: null,
      redriveAt: null,
    })
  })

  test('D2 is indexed by resolved, type and failure time', async () => {
    const indexes = await column<string>(
      db.pool,
      `select indexdef from pg_indexes where schemaname = $1 and tablename = 'outbox_dead_letter'`,
      [db.schema],
    )
    for (const columns of ['(resolved', '(event_type', '(failed_at']) {
      expect(indexes.some((definition) => definition.includes(columns))).toBe(true)
    }
  })

  test('D3 lists by filter, newest first; unresolved ones unless asked otherwise', async () => {
    await subscribe(db, { name: 'sub' })
    const ids: string[] = []
    for (const [type, code] of [
      ['A', 'X'],
      ['A', 'Y'],
      ['B', 'X'],
    ] as const) {
      const eventId = await insertEvent(db.pool, { type })
      ids.push((await makeDead(db, { eventId, code })).letterId)
    }
    await resolve(ids[0] as string)
    const [first, second, third] = ids
    const listed = async (query: object): Promise<string[]> => (await list(query)).map(({ id }) => id)
    const cases: [object, (string | undefined)[]][] = [
      [{}, [third, second]],
      [{ resolved: null }, [third, second, first]],
      [{ resolved: true }, [first]],
      [{ resolved: null, eventType: 'A' }, [second, first]],
      [{ resolved: null, errorCode: 'X' }, [third, first]],
      [{ eventType: 'A', errorCode: 'Y', subscription: 'sub' }, [second]],
      [{ subscription: 'other' }, []],
      [{ eventType: `A' or true --` }, []],
    ]
    for (const [query, expected] of cases) {
      expect(await listed(query)).toEqual(expected)
      expect(await count(query)).toBe(expected.length)
    }
  })

  test('D3 pages by id: every one once, also while new ones arrive', async () => {
    await subscribe(db)
    for (let n = 0; n < 7; n += 1) await oneDead()
    const seen: string[] = []
    let page = await list({ limit: 3 })
    while (page.length > 0) {
      seen.push(...page.map(({ id }) => id))
      await oneDead()
      page = await list({ limit: 3, before: seen.at(-1) as string })
    }
    expect(seen.map(Number)).toEqual([7, 6, 5, 4, 3, 2, 1])
  })

  test('an unknown one is null', async () => {
    expect(await find('999')).toBeNull()
    expect(await find('9223372036854775807')).toBeNull()
  })
})

describe('retrying', () => {
  test('D3 E12 sets the delivery PENDING with no attempts and resolves the letter, with operator and note', async () => {
    await subscribe(db)
    const { letterId, eventId } = await oneDead()
    await retry(letterId, ' kim ', 'destination is back')
    expect(await find(letterId)).toMatchObject({
      resolved: true,
      resolution: 'retry',
      resolvedAt: expect.any(Date),
      resolvedBy: 'kim',
      note: 'destination is back',
    })
    const { rows } = await db.pool.query('select status, attempt_count from outbox_delivery')
    expect(rows).toEqual([{ status: 'PENDING', attempt_count: 0 }])
    const log = await db.pool.query(
      'select operator, action, target, affected, note from outbox_operator_log',
    )
    expect(log.rows).toEqual([
      {
        operator: 'kim',
        action: 'retry',
        target: { deadLetter: Number(letterId), eventId, subscription: 'sub' },
        affected: 1,
        note: 'destination is back',
      },
    ])
  })

  test('D3 dying again makes a new dead letter', async () => {
    await subscribe(db)
    const { letterId, eventId } = await oneDead()
    await retry(letterId)
    const again = await makeDead(db, { eventId })
    expect(again.letterId).not.toBe(letterId)
    expect((await list({ resolved: null })).map(({ id, resolved }) => [id, resolved])).toEqual([
      [again.letterId, false],
      [letterId, true],
    ])
    await retry(again.letterId)
  })

  test('of two operators at once one succeeds, the other learns who was first', async () => {
    await subscribe(db)
    const { letterId } = await oneDead()
    const results = await Promise.allSettled([retry(letterId, 'kim'), resolve(letterId, 'lee')])
    const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason)
    expect(refused).toHaveLength(1)
    expect(refused[0]).toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringMatching(/^Dead letter \d+ was already (retried by kim|resolved by lee)\.$/),
    })
    expect(await column(db.pool, 'select count(*)::int from outbox_operator_log')).toEqual([1])
  })

  test('whoever comes second learns what was done', async () => {
    await subscribe(db)
    const { letterId, eventId } = await oneDead()
    await retry(letterId, 'kim')
    await expect(resolve(letterId, 'lee')).rejects.toThrow(
      `Dead letter ${letterId} was already retried by kim.`,
    )
    const again = await makeDead(db, { eventId })
    await resolve(again.letterId, 'lee')
    await expect(retry(again.letterId, 'kim')).rejects.toThrow('was already resolved by lee.')
  })

  test('D4 a letter of an event that no subscription took cannot be retried, and stays open', async () => {
    await subscribe(db, { streamLike: ['other'] })
    await insertEvent(db.pool)
    await takeUnmatched(db.pool, db.quoted, 1, true)
    const [letter] = await list()
    await expect(retry(letter?.id as string)).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('Publish the event again, or resolve by hand'),
    })
    expect(await count()).toBe(1)
    await resolve(letter?.id as string)
    expect(await count()).toBe(0)
  })
})

describe('resolving by hand', () => {
  test('D3 leaves the delivery DEAD', async () => {
    await subscribe(db)
    const { letterId } = await oneDead()
    await resolve(letterId, 'lee', 'refunded by phone')
    expect(await one(db.pool, 'select status from outbox_delivery')).toBe('DEAD')
    expect(await find(letterId)).toMatchObject({
      resolved: true,
      resolution: 'resolve',
      resolvedBy: 'lee',
      note: 'refunded by phone',
    })
    expect(await column(db.pool, 'select action from outbox_operator_log')).toEqual(['resolve'])
  })

  test('lets the parked events of its key go on, and only those', async () => {
    await subscribe(db, { orderBy: 'aggregate' })
    const { letterId } = await oneDead(true)
    const behind = await insertEvent(db.pool, { aggregateId: '1' })
    const other = await insertEvent(db.pool, { aggregateId: '2' })
    const park = `update outbox_delivery set fresh = false, held = true, next_retry_at = 'infinity' where status = 'PENDING'`
    await db.pool.query(park)
    await resolve(letterId)
    const due = `select event_id::text from outbox_delivery where status = 'PENDING' and next_retry_at <= now()`
    expect(await column(db.pool, due)).toEqual([behind])
    expect(
      await one(db.pool, `select next_retry_at = 'infinity' from outbox_delivery where event_id = $1`, [
        other,
      ]),
    ).toBe(true)
    expect(await one(db.pool, `select held from outbox_delivery where status = 'DEAD'`)).toBe(false)
  })
})

describe('what is refused before the database is asked', () => {
  test.each(['', '0', '-1', '1.5', 'abc', '1; drop table x', '9223372036854775808', '01', '1'.repeat(30)])(
    'the id %j',
    async (id) => {
      for (const act of [find(id), retry(id), resolve(id), list({ before: id })]) {
        await expect(act).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
      }
    },
  )

  test.each(['', '   ', '\n\t'])('the operator %j', async (operator) => {
    await expect(retry('1', operator)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    await expect(resolve('1', operator)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
  })

  test.each([0, -1, 1.5, 1001, Number.NaN])('a page of %d', async (limit) => {
    await expect(list({ limit })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
  })
})

test('an unknown dead letter is not found', async () => {
  await expect(retry('42')).rejects.toMatchObject({ code: 'NOT_FOUND', id: '42' })
  await expect(resolve('42')).rejects.toMatchObject({ code: 'NOT_FOUND', id: '42' })
})

test('text that no database stores becomes text that it does', async () => {
  await subscribe(db)
  const { letterId } = await oneDead()
  await resolve(letterId, 'kim\u0000', 'a\u0000b \ud800')
  expect(await find(letterId)).toMatchObject({ resolvedBy: 'kim�', note: 'a�b �' })
})

test('the SQL function itself refuses an act without a name', async () => {
  await subscribe(db)
  const { letterId } = await oneDead()
  for (const name of ['outbox_retry', 'outbox_resolve']) {
    await expect(db.pool.query(`select ${name}($1, '  ')`, [letterId])).rejects.toMatchObject({
      code: '22023',
    })
    await expect(db.pool.query(`select ${name}($1, null)`, [letterId])).rejects.toMatchObject({
      code: '22023',
    })
  }
})
