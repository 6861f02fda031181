import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDeadLetters, type DeadLetters } from '../../../src/dead-letter/dead-letters.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { createOutboxDatabase, insertEvent, makeDead, type OutboxDatabase, subscribe } from './fixtures.ts'

let db: OutboxDatabase
let letters: DeadLetters

beforeEach(async () => {
  db = await createOutboxDatabase()
  letters = createDeadLetters(postgresStore({ pool: db.pool, schema: db.schema }))
})
afterEach(async () => {
  await db.drop()
})

/** The first event of an aggregate dies and blocks it; so many more stand behind it. Returns its dead letter. */
async function block(aggregateId: string, behind: number): Promise<{ letterId: string; eventId: string }> {
  const eventId = await insertEvent(db.pool, { aggregateId })
  const { letterId } = await makeDead(db, { eventId, held: true })
  for (let n = 0; n < behind; n += 1) await insertEvent(db.pool, { aggregateId })
  return { letterId, eventId }
}

const park = `update outbox_delivery set fresh = false, held = true, next_retry_at = 'infinity' where status = 'PENDING'`
const keys = async (query = {}): Promise<string[]> =>
  (await letters.blocked(query)).map(({ orderingKey }) => orderingKey)

describe('blocked keys', () => {
  test('D3 are listed with the dead letter to decide on, its error and age, and how many wait', async () => {
    await subscribe(db, { orderBy: 'aggregate' })
    const first = await block('1', 2)
    await db.pool.query(park)
    await block('2', 0)
    await insertEvent(db.pool, { aggregateId: '1' })
    await insertEvent(db.pool, { aggregateId: '3' })
    expect(await letters.blocked()).toEqual([
      {
        subscription: 'sub',
        orderingKey: 'order:1',
        deadLetterId: first.letterId,
        eventId: first.eventId,
        eventType: 'OrderPlaced',
        errorCode: 'BOOM',
        errorMessage: 'it failed',
        failedAt: expect.any(Date),
        blockedSeconds: expect.any(Number),
        waiting: 3,
        waitingIsExact: true,
      },
      expect.objectContaining({ orderingKey: 'order:2', waiting: 0 }),
    ])
  })

  test('D3 go on once it is decided: retried, resolved or amended', async () => {
    await subscribe(db, { orderBy: 'aggregate' })
    const [one, two, three] = [await block('1', 1), await block('2', 1), await block('3', 1)]
    expect(await keys()).toEqual(['order:1', 'order:2', 'order:3'])
    await letters.retry(one.letterId, { operator: 'kim' })
    await letters.resolve(two.letterId, { operator: 'kim' })
    await letters.amend(three.letterId, { total: 2 }, { operator: 'kim' })
    expect(await keys()).toEqual([])
  })

  test('D3 are pages by dead letter, and of one subscription', async () => {
    await subscribe(db, { orderBy: 'aggregate' })
    const first = await block('1', 0)
    await block('2', 0)
    expect(await keys({ limit: 1 })).toEqual(['order:1'])
    expect(await keys({ after: first.letterId })).toEqual(['order:2'])
    expect(await keys({ subscription: 'sub' })).toHaveLength(2)
    expect(await keys({ subscription: 'nobody' })).toEqual([])
  })

  test('are not those of a subscription without order, or one that goes on behind a dead event', async () => {
    await subscribe(db)
    await makeDead(db, { eventId: await insertEvent(db.pool) })
    await subscribe(db, { name: 'goes-on', orderBy: 'aggregate', onDead: 'continue' })
    await makeDead(db, { eventId: await insertEvent(db.pool, { aggregateId: '2' }) })
    expect(await keys()).toEqual([])
  })

  test('are not those of a subscription that was retired', async () => {
    await subscribe(db, { orderBy: 'aggregate' })
    await block('1', 1)
    await db.pool.query(`select outbox_retire('sub', 'kim', discard => true)`)
    expect(await keys()).toEqual([])
  })

  test('counting what waits ends after a thousand, and says so', async () => {
    await subscribe(db, { orderBy: 'aggregate' })
    await block('1', 0)
    await db.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       select 'shop.order', 'OrderPlaced', 'order', '1', '{}' from generate_series(1, 1500)`,
    )
    await db.pool.query(park)
    expect(await letters.blocked()).toMatchObject([{ waiting: 1_000, waitingIsExact: false }])
  })

  test.each([{ limit: 0 }, { limit: -5 }, { after: 'x' }, { subscription: 'a\0' }, { before: '1' }, null])(
    'refuses %j',
    async (query) => {
      await expect(letters.blocked(query as never)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    },
  )
})
