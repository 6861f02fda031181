import { describe, expect, test } from 'vitest'
import { recordingSink } from '../alert/support.ts'
import type { ShopSubscription } from './dlq-system.ts'
import { completeOrders, numbers, openShop, processor, type Shop, SOON } from './dlq-system.ts'

// Each rule at its default, with rows on both sides of it. Ages keep some seconds away from a limit, on the side where
// time cannot carry them over it: a slow machine makes a delivery older, never younger.

const NAME = 'outbox-event-processor'
type Handled = Parameters<typeof processor>[0]
const noop: Handled = () => {}
const refuse: Handled = () => {
  throw new Error('the stock service refused')
}

async function rulesOn(shop: Shop): Promise<readonly string[]> {
  await using monitor = shop.newProcess().monitor({ sinks: [recordingSink()] })
  return (await monitor.check()).conditions.map(({ rule }) => rule)
}

const subscriptionOf = (handle: Handled, maxAttempts: number): ShopSubscription =>
  processor(handle, { ...SOON, maxAttempts })

/** A shop with a paused processor, whose orders wait. */
async function pausedShop(shop: Shop, orders: number): Promise<void> {
  await shop.run([subscriptionOf(noop, 1)])
  await shop.outbox.pause(NAME, { operator: 'kim' })
  await completeOrders(shop, numbers(1, orders))
}

async function age(shop: Shop, waited: string): Promise<void> {
  await shop.pool.query(
    `update outbox_delivery set created_at = clock_timestamp() - $1::interval where status = 'PENDING'`,
    [waited],
  )
}

test('L7 a hundred PENDING are stuck past five minutes, ninety-nine of them or a minute less are not', async () => {
  await using shop = await openShop()
  await pausedShop(shop, 100)
  await age(shop, '4 minutes')
  expect(await rulesOn(shop)).not.toContain('stuckPending')
  await age(shop, '5 minutes 1 second')
  expect(await rulesOn(shop)).toContain('stuckPending')
  await shop.pool.query(`update outbox_delivery set created_at = now()
                          where id = (select min(id) from outbox_delivery)`)
  expect(await rulesOn(shop)).not.toContain('stuckPending')
})

test('U9 one PENDING that is older than a minute is told of, one of ten seconds is not', async () => {
  await using shop = await openShop()
  await pausedShop(shop, 1)
  await age(shop, '10 seconds')
  expect(await rulesOn(shop)).toEqual([])
  await age(shop, '61 seconds')
  expect(await rulesOn(shop)).toEqual(['oldestPending'])
})

test('U9 what is in hand is unpublished too: 1,001 of both are told of, 1,000 are not', async () => {
  await using shop = await openShop()
  await pausedShop(shop, 1_000)
  await shop.pool.query(
    `update outbox_delivery set status = 'PROCESSING', fresh = false, attempt_count = 1, locked_by = 'w',
            locked_until = now() + interval '1 hour', lease_token = 1
      where id = (select min(id) from outbox_delivery)`,
  )
  await shop.pool.query(
    `insert into outbox_lease (token, worker_id, subscription_id, until, lanes, positions)
     select 1, 'w', subscription_id, locked_until, '{}', array[id] from outbox_delivery where status = 'PROCESSING'`,
  )
  expect(await rulesOn(shop)).not.toContain('unpublished')
  await completeOrders(shop, [1_001])
  expect(await rulesOn(shop)).toContain('unpublished')
})

test('U9 D7 ten dead letters are ten unresolved and not more than ten dead; eleven are both', async () => {
  await using shop = await openShop()
  await shop.run([subscriptionOf(refuse, 1)])
  await completeOrders(shop, numbers(1, 9))
  await shop.untilSettled()
  expect(await rulesOn(shop)).toEqual([])
  await completeOrders(shop, [10])
  await shop.untilSettled()
  expect(await rulesOn(shop)).toEqual(['unresolved'])
  await completeOrders(shop, [11])
  await shop.untilSettled()
  expect(await rulesOn(shop)).toEqual(['unresolved', 'dead'])
})

describe('U9 the mean of retries, attempts - 1', () => {
  /** A handler that succeeds at the second attempt, and for the last order at a later one. */
  const healsAt = (attempts: (orderId: number) => number): Handled => {
    const tried = new Map<number, number>()
    return ({ payload: { orderId } }) => {
      const attempt = (tried.get(orderId) ?? 0) + 1
      tried.set(orderId, attempt)
      if (attempt < attempts(orderId)) throw new Error('unsteady')
    }
  }

  test.each([
    { title: 'of exactly 1 is not told of', last: 2, told: [] },
    { title: 'of 21 retries of 20 is', last: 3, told: ['meanRetries'] },
  ])('$title', async ({ last, told }) => {
    await using shop = await openShop()
    await shop.run([
      subscriptionOf(
        healsAt((orderId) => (orderId === 20 ? last : 2)),
        5,
      ),
    ])
    await completeOrders(shop, numbers(1, 20))
    await shop.untilSettled()
    expect(await rulesOn(shop)).toEqual(told)
  })
})

test.each([
  { title: '1,100 events a second advise the log stream', events: 110_000, told: ['eventRate'] },
  { title: '1,000 do not', events: 100_000, told: [] },
])('L13 $title', async ({ events, told }) => {
  await using shop = await openShop()
  await shop.run([subscriptionOf(noop, 1)])
  await completeOrders(shop, [1])
  await shop.untilSettled()
  await rulesOn(shop)
  // As if so many had been published in the last hundred seconds, which only grow.
  await shop.pool.query(
    `update outbox_monitor set rate_position = rate_position - $1::bigint,
            rate_at = clock_timestamp() - interval '100 seconds'`,
    [events],
  )
  expect(await rulesOn(shop)).toEqual(told)
})

test('a worker is missing a minute after its heartbeat ended, not before', async () => {
  await using shop = await openShop()
  await shop.run([subscriptionOf(noop, 1)])
  const gone = (id: string, ended: string): Promise<unknown> =>
    shop.pool.query(
      `insert into outbox_worker (worker_id, subscription_ids, host, pid, until, seen_at)
       select $1, array_agg(id), 'app-2', 4711, now() - $2::interval, now() - $2::interval
         from outbox_subscription`,
      [id, ended],
    )
  const missing = async (): Promise<readonly string[]> => {
    await using monitor = shop.newProcess().monitor({ sinks: [recordingSink()] })
    return (await monitor.check()).seen.figures?.vanished.map(({ workerId }) => workerId) ?? []
  }
  await gone('late', '10 seconds')
  expect(await missing()).toEqual([])
  await gone('gone', '61 seconds')
  expect(await missing()).toEqual(['gone'])
})
