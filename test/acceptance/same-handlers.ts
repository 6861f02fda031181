import type pg from 'pg'
import { z } from 'zod'
import { defineEvents, type SubscriptionHandlers, type Transaction } from '../../src/index.ts'

/** A shop whose licences follow its orders: one file of handlers, which knows nothing of where events come from. */
export const shopEvents = defineEvents({
  OrderPlaced: {
    stream: 'shop.order',
    aggregate: 'order',
    version: 2,
    schema: z.object({ product: z.string(), amount: z.number(), currency: z.string() }),
    upcast: { 1: (old) => ({ ...old, currency: 'KRW' }) },
    sequence: true,
  },
  OrderPaid: {
    stream: 'shop.order',
    aggregate: 'order',
    schema: z.object({ amount: z.number() }),
    sequence: true,
  },
  OrderCancelled: {
    stream: 'shop.order',
    aggregate: 'order',
    schema: z.object({ why: z.string() }),
    sequence: true,
  },
})

export type ShopEvents = typeof shopEvents

export const SHOP_TABLES = `
  create table order_view (
    id text primary key, product text not null, currency text not null, paid numeric not null default 0,
    state text not null, trail text[] not null default '{}', correlation text);`

/** The handlers. Each effect happens once, whatever is delivered twice; the trail tells in which order they came. */
export function shopHandlers(pool: pg.Pool): SubscriptionHandlers<ShopEvents, Transaction> {
  const failedOnce = new Set<string>()
  return {
    OrderPlaced: async ({ aggregateId, payload: { product, currency }, headers }, ctx) => {
      await ctx.once(pool, (tx) =>
        tx.query(`insert into order_view values ($1, $2, $3, 0, 'placed', '{placed}', $4)`, [
          aggregateId,
          product,
          currency,
          headers['correlationId'] ?? null,
        ]),
      )
    },
    OrderPaid: async ({ aggregateId, eventId, payload: { amount } }, ctx) => {
      if (amount % 5 === 0 && !failedOnce.has(eventId)) {
        failedOnce.add(eventId)
        throw new Error('the bank did not answer')
      }
      await ctx.once(pool, (tx) =>
        tx.query(
          `update order_view set paid = paid + $2, state = 'paid', trail = trail || 'paid'::text where id = $1`,
          [aggregateId, amount],
        ),
      )
    },
    OrderCancelled: async ({ aggregateId }, ctx) => {
      await ctx.once(pool, (tx) =>
        tx.query(
          `update order_view set state = 'cancelled', trail = trail || 'cancelled'::text where id = $1`,
          [aggregateId],
        ),
      )
    },
  }
}
