import type { PoolClient } from 'pg'
import type { Transaction } from '../../src/index.ts'
import { type Subscription, type SubscriptionOptions, subscription } from '../../src/index.ts'
import { type EverbitEvents, HttpError, postOrder } from './everbit-system.ts'
import type { System } from './support.ts'

type Everbit = System<EverbitEvents>
type Options = Partial<SubscriptionOptions<EverbitEvents, Transaction>>
type EverbitSubscription = Subscription<EverbitEvents, Transaction>

/** The exchange, and how long the executor waits for it. */
interface ExchangeOptions {
  readonly url: string
  readonly timeoutMs?: number
  /**
   * False leaves it to the worker to write down that the command is done.
   * @default true: in the transaction that writes the outcome
   */
  readonly completes?: boolean
}

interface OrderAttempt {
  readonly orderIntentId: string
  readonly attemptNo: number
  readonly identifier: string
}

/**
 * The order executor of the seed. The attempt's own state machine is what keeps a second order from being sent: it is
 * SENT before the exchange is called, and whatever is not known afterwards becomes UNKNOWN.
 */
export function orderExecutor(
  everbit: Everbit,
  exchange: ExchangeOptions,
  options: Options = {},
): EverbitSubscription {
  const { outbox, pool } = everbit
  return subscription('order-executor', {
    ...options,
    streams: ['everbit.trade.command'],
    on: {
      CreateOrderAttempt: async (event, ctx) => {
        const { identifier } = event.payload
        const before = await outbox.inTransaction(pool, (tx) => begin(tx, event.payload))
        if (before !== 'PREPARED' && before !== 'SENT') return
        // SENT by a worker that was not seen again: it may have reached the exchange, so it is not sent again.
        const outcome = before === 'SENT' ? 'UNKNOWN' : await send(exchange, identifier)
        await outbox.inTransaction(pool, async (tx) => {
          await tx.query('update order_attempt set status = $2 where identifier = $1', [identifier, outcome])
          if (outcome === 'PREPARED') return
          const type = { ACKED: 'OrderAccepted', UNKNOWN: 'OrderTimedOut' } as const
          if (outcome === 'ACKED' || outcome === 'UNKNOWN') {
            await ctx.publish(tx, type[outcome], { aggregateId: identifier, payload: { identifier } })
          }
          if (exchange.completes !== false) await ctx.complete(tx)
        })
        if (outcome === 'PREPARED') throw new Error('the exchange could not be reached')
      },
    },
  })
}

/** Settles UNKNOWN attempts by asking the exchange for them. */
export function reconciler(everbit: Everbit, url: string): EverbitSubscription {
  return subscription('reconciler', {
    startFrom: 'beginning',
    on: {
      OrderTimedOut: async (event) => {
        const answer = await fetch(`${url}/v1/order?identifier=${event.payload.identifier}`)
        await answer.arrayBuffer()
        await everbit.pool.query(
          `update order_attempt set status = $2 where identifier = $1 and status = 'UNKNOWN'`,
          [event.payload.identifier, answer.ok ? 'ACKED' : 'REJECTED'],
        )
      },
    },
  })
}

/** Makes the attempt SENT if it is about to be; returns what it was before. */
async function begin(tx: PoolClient, attempt: OrderAttempt): Promise<string> {
  const key = [attempt.orderIntentId, attempt.attemptNo, attempt.identifier]
  await tx.query(
    `insert into order_attempt (order_intent_id, attempt_no, identifier, status) values ($1, $2, $3, 'PREPARED')
     on conflict do nothing`,
    key,
  )
  const { rows } = await tx.query<{ status: string }>(
    'select status from order_attempt where order_intent_id = $1 and attempt_no = $2 and identifier = $3 for update',
    key,
  )
  const before = rows[0]?.status ?? 'REJECTED'
  if (before === 'PREPARED') {
    await tx.query(`update order_attempt set status = 'SENT' where identifier = $1`, [attempt.identifier])
  }
  return before
}

/** What is known after one call. PREPARED means that it certainly did not arrive. */
async function send({ url, timeoutMs }: ExchangeOptions, identifier: string): Promise<string> {
  try {
    await postOrder(url, identifier, timeoutMs)
    return 'ACKED'
  } catch (error) {
    if (error instanceof HttpError && error.status === 429) return 'THROTTLED'
    if (error instanceof HttpError && error.status < 500) return 'REJECTED'
    const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) : undefined
    return cause?.code === 'ECONNREFUSED' ? 'PREPARED' : 'UNKNOWN'
  }
}

/** An order intent and its command, in one transaction. */
export function placeOrder(everbit: Everbit, intentId: string, attemptNo = 1): Promise<string> {
  const { outbox, pool } = everbit
  return outbox.inTransaction(pool, async (tx) => {
    await tx.query(`insert into order_intent values ($1, 'KRW-BTC', 'BUY') on conflict do nothing`, [
      intentId,
    ])
    return outbox.publish(tx, 'CreateOrderAttempt', {
      aggregateId: intentId,
      payload: { orderIntentId: intentId, attemptNo, identifier: `everbit-${intentId}-${attemptNo}` },
    })
  })
}
