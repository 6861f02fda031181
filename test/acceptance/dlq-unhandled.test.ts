import { describe, expect, test } from 'vitest'
import { openShop, processor, type Shop } from './dlq-system.ts'
import { eventually } from './support.ts'

describe('events without a handler', () => {
  const insert = (shop: Shop, stream: string, type: string): Promise<string> =>
    shop.value(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       values ($1, $2, 'Order', '1', '{}') returning event_id`,
      [stream, type],
    )

  test('D4 an event of a stream without a handler for its type is a dead letter at once, and says why', async () => {
    await using shop = await openShop()
    const runs: unknown[] = []
    await shop.run([processor((event) => void runs.push(event), { streams: ['ecommerce.order'] })])
    const eventId = await insert(shop, 'ecommerce.order', 'OrderRefunded')
    await shop.untilStatus(eventId, 'DEAD')
    expect(await shop.outbox.deadLetters.list()).toMatchObject([
      {
        eventId,
        errorCode: 'NO_HANDLER',
        errorMessage: expect.stringContaining('no handler for events of type "OrderRefunded"'),
        retryCount: 0,
      },
    ])
    expect(shop.toldOf('retried')).toEqual([])
    expect(runs).toEqual([])
  })

  test('D4 a worker that would leave an event of its streams without a handler does not start', async () => {
    await using shop = await openShop()
    const incomplete = () => shop.outbox.worker([processor(() => {}, { streams: ['ecommerce.*'] })])
    expect(incomplete).toThrow('streams bring events without a handler: CouponIssued')
  })

  test('D4 an event that no subscription takes is reported', async () => {
    await using shop = await openShop()
    await (await shop.run([processor(() => {})])).stop()
    const eventId = await insert(shop, 'ecommerce.coupon', 'CouponIssued')
    await shop.run([processor(() => {})])
    await eventually('it is reported', () => shop.toldOf('unmatched').length === 1)
    expect(shop.toldOf('unmatched')).toMatchObject([
      { event: { eventId, stream: 'ecommerce.coupon', type: 'CouponIssued' } },
    ])
    expect(await shop.outbox.deadLetters.count()).toBe(0)
  })

  test('D4 and by option it is a dead letter as well', async () => {
    await using shop = await openShop()
    await (await shop.run([processor(() => {})])).stop()
    const eventId = await insert(shop, 'ecommerce.coupon', 'CouponIssued')
    await shop.run([processor(() => {})], { unmatched: 'dead-letter' })
    await eventually('it is set aside', async () => (await shop.outbox.deadLetters.count()) === 1)
    expect(await shop.outbox.deadLetters.list()).toMatchObject([
      {
        eventId,
        errorCode: 'NO_SUBSCRIPTION',
        errorMessage: 'No subscription takes events of type CouponIssued on stream ecommerce.coupon.',
      },
    ])
  })
})
