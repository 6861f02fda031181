import { describe, expect, test } from 'vitest'
import { createOutbox, type WorkerEvent } from '../../src/index.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { resolveSubscription } from '../../src/worker/resolve-subscription.ts'
import {
  completeOrders,
  numbers,
  openShop,
  order,
  processor,
  SEED,
  type Shop,
  type ShopSubscription,
  SOON,
  shopEvents,
} from './dlq-system.ts'
import { stoppedInTime } from './stopped-in-time.ts'
import { eventually } from './support.ts'

/** A processor on a clock that the test moves, and what it claimed at which moment of it. */
async function startTimed(shop: Shop, subscription: ShopSubscription) {
  // Joining takes a few rounds of housekeeping: on the real clock, before time is stopped.
  await (await shop.run([subscription])).stop()
  const clock = new ManualClock()
  const claims: { readonly atMs: number; readonly count: number }[] = []
  const outbox = createOutbox({
    store: postgresStore({ pool: shop.pool, schema: shop.schema }),
    events: shopEvents,
    clock,
  })
  const note = (event: WorkerEvent): void => {
    if (event.kind === 'claimed') claims.push({ atMs: clock.monotonicMs(), count: event.count })
  }
  const worker = outbox.worker([subscription], { leaseMs: 3_600_000, listen: false, observers: [note] })
  return { clock, claims, worker, wake: () => outbox.wake() }
}

describe('the processor', () => {
  test('D1 takes one batch of 50 every 5 seconds, no sooner and no more', async () => {
    await using shop = await openShop()
    const { clock, claims, worker, wake } = await startTimed(
      shop,
      processor(() => {}, SEED),
    )
    await using _ = stoppedInTime(worker, clock)
    const done = async (count: number): Promise<void> =>
      eventually(
        `${count} are done`,
        async () => (await shop.count('outbox_delivery', "status = 'DONE'")) === count,
      )
    await completeOrders(shop, numbers(1, 120))
    await worker.start()
    await done(50)
    await clock.advance(4_999)
    // News wake nobody out of a fixed period.
    await completeOrders(shop, [121])
    wake()
    // A claim would be answered before these are.
    for (let n = 0; n < 5; n += 1) await shop.count('outbox_delivery')
    expect(claims).toEqual([{ atMs: 0, count: 50 }])
    await clock.advance(1)
    await done(100)
    await clock.advance(5_000)
    await done(121)
    expect(claims).toEqual([
      { atMs: 0, count: 50 },
      { atMs: 5_000, count: 50 },
      { atMs: 10_000, count: 21 },
    ])
  })

  test("D1 the seed's own numbers are what the options say", () => {
    const resolved = resolveSubscription(
      shopEvents,
      processor(() => {}, SEED),
    )
    expect(resolved).toMatchObject({ pollMs: 5_000, batchSize: 50, drain: false })
    expect(resolved.definition.maxAttempts).toBe(5)
    expect([1, 2, 3, 4, 5].map((failed) => resolved.retry.backoff.delayMs(failed, () => 0.99))).toEqual([
      5_000, 5_000, 5_000, 5_000, 5_000,
    ])
  })

  test('D1 maxAttempts counts attempts: the handler of an event that always fails runs exactly 5 times', async () => {
    await using shop = await openShop()
    const attempts: number[] = []
    const fail = (_event: unknown, ctx: { readonly attempt: number }): void => {
      attempts.push(ctx.attempt)
      throw new Error('the stock service refused')
    }
    await shop.run([processor(fail, { ...SEED, pollMs: 20 })])
    const eventId = await shop.publish('OrderCompleted', order(1))
    await eventually('it has failed', () => shop.toldOf('retried').length >= 1)
    const row = await shop.delivery(eventId)
    // The pause is written by the database's clock.
    const pauseMs = (row?.next_retry_at?.getTime() ?? 0) - (row?.updated_at.getTime() ?? 0)
    expect(Math.abs(pauseMs - 5_000)).toBeLessThan(500)
    for (const failures of [1, 2, 3, 4]) {
      await eventually('it has failed', () => shop.toldOf('retried').length >= failures)
      await shop.passRetryDelays()
    }
    await shop.untilStatus(eventId, 'DEAD')
    expect(attempts).toEqual([1, 2, 3, 4, 5])
    expect(shop.toldOf('retried').map(({ delayMs }) => delayMs)).toEqual([5_000, 5_000, 5_000, 5_000])
    expect(await shop.outbox.deadLetters.list()).toMatchObject([{ eventId, retryCount: 4 }])
    expect((await shop.outbox.deadLetters.list())[0]?.attemptHistory).toHaveLength(5)
  })

  test('D1 a failure that heals is processed at a later poll', async () => {
    await using shop = await openShop()
    const attempts: number[] = []
    await shop.run([
      processor((_event, ctx) => {
        attempts.push(ctx.attempt)
        if (ctx.attempt < 3) throw new Error('not yet')
      }),
    ])
    const eventId = await shop.publish('OrderCompleted', order(1))
    await shop.untilStatus(eventId, 'DONE')
    expect(attempts).toEqual([1, 2, 3])
    expect(await shop.outbox.deadLetters.count()).toBe(0)
  })

  test('D1 failed events never delay good ones: all that are new fit into the very next batch', async () => {
    await using shop = await openShop()
    const goodAtMs: number[] = []
    const { clock, claims, worker } = await startTimed(
      shop,
      processor((event) => {
        if (event.payload.orderId < 1_000) throw new Error('poison')
        goodAtMs.push(clock.monotonicMs())
      }, SEED),
    )
    await using _ = stoppedInTime(worker, clock)
    const failedOnce = (count: number): Promise<void> =>
      eventually(`${count} have failed`, async () => {
        return (await shop.count('outbox_delivery', "status = 'PENDING' and attempt_count = 1")) === count
      })
    await completeOrders(shop, numbers(1, 60))
    await worker.start()
    await failedOnce(50)
    await clock.advance(5_000)
    await failedOnce(60)
    await shop.passRetryDelays()
    await completeOrders(shop, numbers(1_000, 38))
    await clock.advance(5_000)
    await eventually('the good ones are done', () => goodAtMs.length === 38)
    // 60 retries are due and waited longer; they get a quarter of the batch.
    expect(claims.at(-1)).toEqual({ atMs: 10_000, count: 50 })
    expect(new Set(goodAtMs)).toEqual(new Set([10_000]))
  })

  test('D1 a good event is not held up by one that hangs', async () => {
    await using shop = await openShop()
    const good: number[] = []
    await shop.run([
      processor(
        (event) =>
          event.payload.orderId === 1 ? new Promise(() => {}) : void good.push(event.payload.orderId),
        SOON,
      ),
    ])
    await completeOrders(shop, [1])
    await completeOrders(shop, numbers(2, 20))
    await eventually('the others are done', () => good.length === 20)
  })
})
