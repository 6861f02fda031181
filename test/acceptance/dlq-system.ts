import type { Transaction } from '../../src/index.ts'
import {
  defineEvents,
  fixed,
  type Subscription,
  type SubscriptionOptions,
  subscription,
  unchecked,
} from '../../src/index.ts'
import { openSystem, type System } from './support.ts'

/** Events of the shop whose outbox the seed describes. Its names are its own. */
export const shopEvents = defineEvents({
  OrderCompleted: { stream: 'ecommerce.order', aggregate: 'Order', schema: unchecked<{ orderId: number }>() },
  CouponIssued: {
    stream: 'ecommerce.coupon',
    aggregate: 'Coupon',
    schema: unchecked<{ couponId: number }>(),
  },
})

export type ShopEvents = typeof shopEvents
export type Shop = System<ShopEvents>
export type ShopSubscription = Subscription<ShopEvents, Transaction>
type Options = SubscriptionOptions<ShopEvents, Transaction>

export const openShop = (): Promise<Shop> => openSystem(shopEvents)

/** The processor as the seed sets it: every 5 s a batch of 50, what failed again at the next poll, 5 failures at most. */
export const SEED = {
  pollMs: 5_000,
  batchSize: 50,
  drain: false,
  retry: fixed('5s'),
  maxAttempts: 5,
} as const

/** The same without the waiting. */
export const SOON = { pollMs: 20, batchSize: 50, retry: fixed(0), maxAttempts: 5 } as const

/** The processor with the given handler for orders. */
export function processor(
  handle: NonNullable<Options['on']['OrderCompleted']>,
  options: Partial<Options> = SOON,
): ShopSubscription {
  return subscription('outbox-event-processor', { ...options, on: { OrderCompleted: handle } })
}

interface OrderInput {
  readonly aggregateId: number
  readonly payload: { readonly orderId: number }
}

export const order = (orderId: number): OrderInput => ({ aggregateId: orderId, payload: { orderId } })

/** Publishes orders with these numbers in one transaction. */
export function completeOrders(shop: Shop, orderIds: readonly number[]): Promise<readonly string[]> {
  const { outbox, pool } = shop
  return outbox.inTransaction(pool, (tx) =>
    outbox.publishAll(
      tx,
      orderIds.map((orderId) => ({ type: 'OrderCompleted', ...order(orderId) })),
    ),
  )
}

export const numbers = (from: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_, n) => from + n)
