import { describe, expect, test } from 'vitest'
import { NonRetryableError, subscription } from '../../src/index.ts'
import {
  completeOrders,
  numbers,
  openShop,
  processor,
  type Shop,
  type ShopSubscription,
  SOON,
} from './dlq-system.ts'

const OPERATOR = 'admin@example.com'

/** Takes most orders at once, some at the second attempt, and every tenth never. */
const moody = (): ShopSubscription =>
  processor((event, ctx) => {
    const { orderId } = event.payload
    if (orderId % 10 === 0) throw new NonRetryableError('재고가 부족합니다')
    if (orderId % 3 === 0 && ctx.attempt === 1) throw new Error('결제 서버 오류')
  })

const auditor = (): ShopSubscription =>
  subscription('audit', { ...SOON, startFrom: 'beginning', on: { '*': () => undefined } })

/** Verifies again and again until the work is over. Returns how often it held, and how often it did not. */
async function verifyDuring(shop: Shop, work: Promise<unknown>): Promise<{ held: number; failed: number }> {
  let isOver = false
  const over = work.finally(() => {
    isOver = true
  })
  const result = { held: 0, failed: 0 }
  while (!isOver) {
    const { holds } = await shop.outbox.proof.verify()
    result[holds ? 'held' : 'failed'] += 1
  }
  await over
  return result
}

describe('the proof', () => {
  test('L8 D3 U9 the equation holds at every moment: while events are published, delivered, retried, set aside and forgotten, and while a subscription joins', async () => {
    await using shop = await openShop()
    await shop.run([moody()])
    const busy = async (): Promise<void> => {
      for (let batch = 0; batch < 20; batch += 1) {
        await completeOrders(shop, numbers(1 + batch * 20, 20))
        if (batch === 10) await shop.runElsewhere([auditor()])
        await shop.pool.query(
          'select outbox_forget(array(select event_id from outbox_event order by id limit 15))',
        )
      }
      await shop.untilSettled()
    }
    const { held, failed } = await verifyDuring(shop, busy())
    expect(failed).toBe(0)
    expect(held).toBeGreaterThan(5)
    const { subscriptions } = await shop.outbox.proof.verify()
    const processing = subscriptions.find((proof) => proof.subscription === 'outbox-event-processor')
    expect(processing).toMatchObject({ counts: { PENDING: 0, PROCESSING: 0, DEAD: 40 }, holds: true })
  })

  test('L8 U9 an event that a superuser took away from a subscription is named', async () => {
    await using shop = await openShop()
    await shop.run([moody()])
    const ids = await completeOrders(shop, numbers(1, 5))
    await shop.untilSettled()
    await shop.pool.query(
      `begin; set local session_replication_role = replica;
       delete from outbox_delivery where event_id = '${ids[2]}'; commit`,
    )
    expect(await shop.outbox.proof.verify()).toMatchObject({
      holds: false,
      subscriptions: [{ matched: 5, counts: { DONE: 4 }, missing: { count: 1, eventIds: [ids[2]] } }],
    })
  })

  test('L11 D3 every act of an operator is a link of a chain that shows what was changed afterwards', async () => {
    await using shop = await openShop()
    await shop.run([moody()])
    await completeOrders(shop, [10, 20, 30])
    await shop.untilSettled()
    const letters = await shop.outbox.deadLetters.list()
    for (const { id } of letters) {
      await shop.outbox.deadLetters.resolve(id, { operator: OPERATOR, note: '환불 처리함' })
    }
    await shop.outbox.pause('outbox-event-processor', { operator: OPERATOR })
    expect(await shop.outbox.proof.audit()).toMatchObject({ holds: true, entries: 4, broken: null })
    await shop.pool.query(
      `begin; set local session_replication_role = replica;
       update outbox_operator_log set note = '처리하지 않음' where entry = 2; commit`,
    )
    expect(await shop.outbox.proof.audit()).toMatchObject({
      holds: false,
      broken: { entry: '2', problem: 'changed' },
    })
  })

  test('D4 L7 U9 for every event there is one sentence on where it is', async () => {
    await using shop = await openShop()
    await shop.run([moody()])
    const [delivered, dead] = await completeOrders(shop, [1, 10])
    await shop.untilSettled()
    const coupon = await shop.publish('CouponIssued', { aggregateId: 1, payload: { couponId: 1 } })
    const sentence = async (eventId = ''): Promise<string | undefined> =>
      (await shop.outbox.proof.why(eventId)).subscriptions[0]?.sentence
    expect(await sentence(delivered)).toMatch(/^Delivered at /)
    expect(await sentence(dead)).toMatch(
      /^Failed for good: dead letter \d+, .*재고가 부족합니다.* It waits for a person\.$/,
    )
    expect(await shop.outbox.proof.why(coupon)).toMatchObject({ unmatched: true })
    const { findings } = await shop.outbox.proof.doctor()
    expect(findings.find(({ check }) => check === 'workers')).toMatchObject({ code: 'ALL_SERVED' })
    expect(findings.find(({ check }) => check === 'types')).toMatchObject({ code: 'TYPES_KNOWN' })
  })
})
