import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { defineEvents } from '../../src/index.ts'
import { openSystem, type System, type SystemOptions } from './support.ts'

export const STREAMS = [
  'everbit.trade.command',
  'everbit.trade.event',
  'everbit.backtest.command',
  'everbit.backtest.event',
  'everbit.system.event',
] as const

export const MARKET_DATA = [
  { type: '*Ticker*', reason: 'high-frequency market data is not for the outbox' },
  { type: '*Orderbook*', reason: 'high-frequency market data is not for the outbox' },
  { type: 'Trade*', reason: 'high-frequency market data is not for the outbox' },
  { stream: '*.ticker', reason: 'high-frequency market data is not for the outbox' },
  { stream: '*.orderbook', reason: 'high-frequency market data is not for the outbox' },
  { stream: '*.trade', reason: 'high-frequency market data is not for the outbox' },
] as const

const attempt = z.object({ orderIntentId: z.string(), attemptNo: z.int(), identifier: z.string() })

/** The catalogue of the seed. */
export const everbitEvents = defineEvents(
  {
    CreateOrderAttempt: {
      stream: 'everbit.trade.command',
      aggregate: 'order_intent',
      kind: 'command',
      schema: attempt,
    },
    OrderAccepted: {
      stream: 'everbit.trade.event',
      aggregate: 'order_attempt',
      schema: z.object({ identifier: z.string() }),
    },
    OrderTimedOut: {
      stream: 'everbit.trade.event',
      aggregate: 'order_attempt',
      schema: z.object({ identifier: z.string() }),
    },
    OrderFilled: {
      stream: 'everbit.trade.event',
      aggregate: 'order_attempt',
      schema: z.object({ identifier: z.string(), volume: z.string() }),
    },
    RunBacktest: {
      stream: 'everbit.backtest.command',
      aggregate: 'backtest_job',
      kind: 'command',
      schema: z.object({ jobId: z.string() }),
    },
    BacktestCompleted: {
      stream: 'everbit.backtest.event',
      aggregate: 'backtest_job',
      schema: z.object({ jobId: z.string(), profitRate: z.number() }),
    },
    KillSwitchEnabled: {
      stream: 'everbit.system.event',
      aggregate: 'owner',
      schema: z.object({ reason: z.string() }),
    },
  },
  { refuse: MARKET_DATA },
)

export type EverbitEvents = typeof everbitEvents

const TABLES = `
  create table signal (id bigint generated always as identity primary key, strategy_key text not null, market text not null);
  create table order_intent (id text primary key, market text not null, side text not null);
  create table order_attempt (
    order_intent_id text not null references order_intent (id),
    attempt_no      integer not null,
    identifier      text not null unique,
    status          text not null check (status in
                      ('PREPARED', 'SENT', 'ACKED', 'REJECTED', 'THROTTLED', 'UNKNOWN')),
    unique (order_intent_id, attempt_no));
  create table notification_log (event_id uuid not null unique, sent_at timestamptz not null default now());`

export function openEverbit(options: SystemOptions<EverbitEvents> = {}): Promise<System<EverbitEvents>> {
  return openSystem(everbitEvents, { tables: TABLES, ...options })
}

/** The headers every event of the seed carries. */
export const ATTRIBUTES = { ownerId: 'OWNER', strategyKey: 'EXTREME_FLIP', market: 'KRW-BTC' } as const

/** An exchange on a real socket. It remembers every order it was sent. */
export class Exchange implements AsyncDisposable {
  /** The identifiers of the orders that arrived, in order. */
  readonly orders: string[] = []
  readonly #server: Server

  private constructor(answer: RequestListener) {
    this.#server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://upbit')
      if (request.method === 'POST') this.orders.push(url.searchParams.get('identifier') ?? '')
      answer(request, response)
    })
  }

  static async open(answer: RequestListener): Promise<Exchange> {
    const exchange = new Exchange(answer)
    await new Promise<void>((resolve) => exchange.#server.listen(0, '127.0.0.1', resolve))
    return exchange
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** What most HTTP clients throw for an answer that is not 2xx. */
export class HttpError extends Error {
  readonly status: number
  readonly headers: Headers

  constructor(response: Response) {
    super(`the exchange answered ${response.status}`)
    this.status = response.status
    this.headers = response.headers
  }
}

/** POSTs an order, as the everbit client does: errors of the network as they are, answers as `HttpError`. */
export async function postOrder(url: string, identifier: string, timeoutMs = 20_000): Promise<void> {
  const response = await fetch(`${url}/v1/orders?identifier=${identifier}`, {
    method: 'POST',
    signal: AbortSignal.timeout(timeoutMs),
  })
  await response.arrayBuffer()
  if (!response.ok) throw new HttpError(response)
}

/** Publishes so many commands in one transaction. Returns their ids. */
export function publishCommands(
  everbit: System<EverbitEvents>,
  count: number,
  from = 0,
): Promise<readonly string[]> {
  const { outbox, pool } = everbit
  return outbox.inTransaction(pool, (tx) =>
    outbox.publishAll(
      tx,
      Array.from({ length: count }, (_, n) => ({
        type: 'CreateOrderAttempt',
        aggregateId: `intent-${from + n}`,
        payload: { orderIntentId: `intent-${from + n}`, attemptNo: 1, identifier: `id-${from + n}` },
      })),
    ),
  )
}
