import { describe, expect, test } from 'vitest'
import { NonRetryableError, NotFoundError, type WorkerEvent } from '../../src/index.ts'
import { completeOrders, openShop, order, processor, type Shop } from './dlq-system.ts'
import { eventually, rejection } from './support.ts'

const OPERATOR = 'admin@example.com'
const RESTORED = '재처리를 위해 Outbox로 복원됨'

const refuse = (): never => {
  throw new NonRetryableError('재고가 부족합니다', { failureCode: 'OUT_OF_STOCK' })
}

/** An order that became a dead letter at once. */
async function deadOrder(
  shop: Shop,
  orderId = 1,
): Promise<{ readonly eventId: string; readonly id: string }> {
  const eventId = await shop.publish('OrderCompleted', order(orderId))
  await shop.untilStatus(eventId, 'DEAD')
  const [letter] = await shop.outbox.deadLetters.list()
  return { eventId, id: letter?.id ?? '' }
}

describe('the dead-letter table', () => {
  test('D2 keeps everything a person needs to decide', async () => {
    await using shop = await openShop()
    await shop.run([
      processor((_event, ctx) => {
        throw new Error(`결제 서버 오류 ${ctx.attempt}`)
      }),
    ])
    const { eventId, id } = await deadOrder(shop, 7)
    const [row] = await shop.rows<Record<string, unknown>>('select * from outbox_dead_letter')
    expect(row).toMatchObject({
      subscription: 'outbox-event-processor',
      event_id: eventId,
      event_type: 'OrderCompleted',
      aggregate_type: 'Order',
      aggregate_id: '7',
      payload: { orderId: 7 },
      error_code: 'HANDLER_ERROR',
      error_message: expect.stringContaining('결제 서버 오류 5'),
      failed_at: expect.any(Date),
      retry_count: 4,
      resolved: false,
      resolved_at: null,
      resolved_by: null,
      note: null,
      created_at: expect.any(Date),
      updated_at: expect.any(Date),
    })
    const letter = await shop.outbox.deadLetters.show(id)
    expect(letter.attemptHistory.map(({ attempt, message }) => `${attempt} ${message}`)).toEqual(
      [1, 2, 3, 4, 5].map((n) => expect.stringContaining(`${n} `)),
    )
    expect(letter).toMatchObject({ eventId, aggregateId: '7', payload: { orderId: 7 }, resolved: false })
  })

  test('D2 is indexed by resolved, by event type and by time of failure', async () => {
    await using shop = await openShop()
    const indexes = await shop.rows<{ indexdef: string }>(
      `select indexdef from pg_indexes where schemaname = $1 and tablename = 'outbox_dead_letter'`,
      [shop.schema],
    )
    for (const column of ['resolved', 'event_type', 'failed_at']) {
      expect(
        indexes.filter(
          ({ indexdef }) => indexdef.includes(`btree (${column},`) || indexdef.endsWith(`btree (${column})`),
        ),
      ).toHaveLength(1)
    }
  })
})

describe('dead-letter operations', () => {
  test('D3 the record and the end of the delivery are one: while the record cannot be written, it is not DEAD', async () => {
    await using shop = await openShop()
    await shop.pool.query(`
      create function disk_is_full() returns trigger language plpgsql as
        $$ begin raise exception 'no space left on device' using errcode = '53100'; end $$;
      create trigger disk_is_full before insert on outbox_dead_letter for each row execute function disk_is_full()`)
    await shop.run([processor(refuse)])
    const eventId = await shop.publish('OrderCompleted', order(1))
    await eventually('writing has failed', () =>
      shop.toldOf('error').some(({ during }) => during === 'settle'),
    )
    expect((await shop.delivery(eventId))?.status).toBe('PROCESSING')
    expect(await shop.outbox.deadLetters.count()).toBe(0)
    expect(shop.toldOf('dead')).toEqual([])
    await shop.pool.query('drop trigger disk_is_full on outbox_dead_letter')
    await shop.untilStatus(eventId, 'DEAD')
    expect(await shop.outbox.deadLetters.list()).toMatchObject([{ eventId, retryCount: 0 }])
    await shop.untilTold('dead')
    expect(shop.toldOf('dead')).toHaveLength(1)
  })

  test('D3 nobody ever sees one without the other', async () => {
    await using shop = await openShop()
    let isOver = false
    let looks = 0
    const watch = async (): Promise<number> => {
      let unequal = 0
      while (!isOver) {
        // One statement, one snapshot.
        const counts = await shop.rows<{ dead: string; letters: string }>(
          `select (select count(*) from outbox_delivery where status = 'DEAD') as dead,
                  (select count(*) from outbox_dead_letter where not resolved) as letters`,
        )
        looks += 1
        if (counts[0]?.dead !== counts[0]?.letters) unequal += 1
      }
      return unequal
    }
    const watching = watch()
    await shop.run([processor(refuse)])
    for (let batch = 0; batch < 20; batch += 1) await completeOrders(shop, [batch, batch + 100, batch + 200])
    await shop.untilSettled()
    isOver = true
    expect(await watching).toBe(0)
    expect(looks).toBeGreaterThan(10)
    expect(await shop.outbox.deadLetters.count()).toBe(60)
    // Out of the live queue: no claim can find them.
    expect((await shop.outbox.status())[0]).toMatchObject({ counts: { PENDING: 0, PROCESSING: 0, DEAD: 60 } })
  })

  test('D3 each move is told right after its commit, so that an alert and a threshold check see it', async () => {
    await using shop = await openShop()
    const counts: Promise<number>[] = []
    const alert = (event: WorkerEvent): void => {
      if (event.kind === 'dead') counts.push(shop.outbox.deadLetters.count())
    }
    await shop.run([processor(refuse)], { observers: [alert] })
    for (const orderId of [1, 2, 3]) {
      await deadOrder(shop, orderId)
      await eventually('it was told', () => counts.length === orderId)
    }
    expect(await Promise.all(counts)).toEqual([1, 2, 3])
    expect(shop.toldOf('dead')).toMatchObject([
      {
        event: { aggregateId: '1', type: 'OrderCompleted' },
        failure: { code: 'OUT_OF_STOCK', message: expect.any(String) },
      },
      { event: { aggregateId: '2' } },
      { event: { aggregateId: '3' } },
    ])
  })

  test('D3 retry starts again from 0 and resolves the letter with operator and note; dying again makes a new one', async () => {
    await using shop = await openShop()
    const { deadLetters } = shop.outbox
    const attempts: number[] = []
    await shop.run([
      processor((_event, ctx) => {
        attempts.push(ctx.attempt)
        refuse()
      }),
    ])
    const { eventId, id } = await deadOrder(shop)
    await deadLetters.retry(id, { operator: OPERATOR, note: RESTORED })
    await eventually('it died again', async () => (await deadLetters.count({ resolved: null })) === 2)
    expect(attempts).toEqual([1, 1])
    expect(await deadLetters.show(id)).toMatchObject({
      eventId,
      resolved: true,
      resolvedBy: OPERATOR,
      resolvedAt: expect.any(Date),
      note: RESTORED,
    })
    const [again] = await deadLetters.list()
    expect(again).toMatchObject({ eventId, resolved: false, resolvedBy: null })
    expect(again?.id).not.toBe(id)
    expect(await shop.rows('select operator, action, note from outbox_operator_log')).toEqual([
      { operator: OPERATOR, action: 'retry', note: RESTORED },
    ])
  })

  test('D3 retry puts the event back into the live queue with retry count 0', async () => {
    await using shop = await openShop()
    const worker = await shop.run([processor(refuse)])
    const { eventId, id } = await deadOrder(shop)
    await worker.stop()
    await shop.outbox.deadLetters.retry(id, { operator: OPERATOR, note: RESTORED })
    expect(await shop.delivery(eventId)).toMatchObject({ status: 'PENDING', attempt_count: 0 })
    await shop.run([processor(() => {})])
    await shop.untilStatus(eventId, 'DONE')
  })

  test('D3 resolving by hand keeps operator and note, and runs nothing', async () => {
    await using shop = await openShop()
    const { deadLetters } = shop.outbox
    await shop.run([processor(refuse)])
    const { eventId, id } = await deadOrder(shop)
    await deadLetters.resolve(id, { operator: OPERATOR, note: '수동으로 데이터 보정 완료' })
    expect(await deadLetters.show(id)).toMatchObject({
      resolved: true,
      resolvedBy: OPERATOR,
      note: '수동으로 데이터 보정 완료',
    })
    expect(await deadLetters.count()).toBe(0)
    expect((await shop.delivery(eventId))?.status).toBe('DEAD')
  })

  test('D3 unresolved letters are listed and counted, newest first and by type', async () => {
    await using shop = await openShop()
    const { deadLetters } = shop.outbox
    await shop.run([processor(refuse), shop.outbox.subscription('coupons', { on: { CouponIssued: refuse } })])
    for (const orderId of [1, 2, 3]) await deadOrder(shop, orderId)
    const coupon = await shop.publish('CouponIssued', { aggregateId: 9, payload: { couponId: 9 } })
    await shop.untilStatus(coupon, 'DEAD')
    const [, newestOrder] = await deadLetters.list()
    await deadLetters.resolve(newestOrder?.id ?? '', { operator: OPERATOR })
    expect((await deadLetters.list()).map(({ aggregateId }) => aggregateId)).toEqual(['9', '2', '1'])
    expect(await deadLetters.count()).toBe(3)
    expect(await deadLetters.count({ eventType: 'OrderCompleted' })).toBe(2)
    expect(await deadLetters.count({ subscription: 'coupons' })).toBe(1)
    expect(await deadLetters.count({ errorCode: 'OUT_OF_STOCK', resolved: null })).toBe(4)
    expect((await deadLetters.list({ resolved: true })).map(({ aggregateId }) => aggregateId)).toEqual(['3'])
  })

  test('D3 what cannot be done is refused with a reason', async () => {
    await using shop = await openShop()
    const { deadLetters } = shop.outbox
    await shop.run([processor(refuse)])
    const { id } = await deadOrder(shop)
    expect(await rejection(deadLetters.retry('999', { operator: OPERATOR }))).toBeInstanceOf(NotFoundError)
    await expect(deadLetters.resolve(id, { operator: ' ' })).rejects.toThrow('operator')
    await deadLetters.resolve(id, { operator: OPERATOR })
    const twice = await rejection(deadLetters.retry(id, { operator: OPERATOR }))
    expect(twice).toMatchObject({ code: 'INVALID_STATE', message: expect.stringContaining(OPERATOR) })
  })

  test('D3 of two operators who retry one letter at the same time, one is refused', async () => {
    await using shop = await openShop()
    let runs = 0
    await shop.run([
      processor(() => {
        runs += 1
        if (runs === 1) refuse()
      }),
    ])
    const { eventId, id } = await deadOrder(shop)
    const results = await Promise.allSettled(
      ['a', 'b', 'c'].map((operator) => shop.outbox.deadLetters.retry(id, { operator })),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    await shop.untilStatus(eventId, 'DONE')
    expect(runs).toBe(2)
  })
})
