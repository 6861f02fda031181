import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { exponential, NonRetryableError, subscription } from '../../src/index.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { orderExecutor, placeOrder, reconciler } from './everbit-orders.ts'
import { type EverbitEvents, Exchange, openEverbit, postOrder } from './everbit-system.ts'
import { eventually, type System } from './support.ts'

/** Answers with the given status, resets the connection, or never answers. */
function answer(asked: string): RequestListener {
  return (request, response) => {
    if (asked === 'reset') return void request.socket.destroy()
    if (asked === 'silence') return
    const [status = '200', retryAfter] = asked.split('-')
    const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter }
    response.writeHead(Number(status), headers).end()
  }
}

/** Answers as the identifier asks for. */
const asAsked: RequestListener = (request, response) => {
  const asked = new URL(request.url ?? '/', 'http://upbit').searchParams.get('identifier') ?? ''
  answer(asked)(request, response)
}

type Failures = Record<string, readonly [outcome: string, fail: () => Promise<unknown>]>

/** Ways to fail, each with what must come of it. */
function failuresOf(
  everbit: System<EverbitEvents>,
  { there, gone }: { readonly there: string; readonly gone: string },
): Failures {
  const raise = (code: string): Promise<unknown> =>
    everbit.pool.query(`do $$ begin raise exception 'refused' using errcode = '${code}'; end $$`)
  const http = (status: string) => (): Promise<unknown> => postOrder(there, status)
  return {
    'network: connection refused': ['retried ECONNREFUSED', () => postOrder(gone, 'x')],
    'network: connection reset': ['retried UND_ERR_SOCKET', () => postOrder(there, 'reset')],
    'timeout of the client': ['retried TIMEOUT_ERROR', () => postOrder(there, 'silence', 50)],
    'answer 408': ['retried HTTP_408', http('408')],
    'answer 429': ['retried HTTP_429', http('429')],
    'answer 500': ['retried HTTP_500', http('500')],
    'answer 502': ['retried HTTP_502', http('502')],
    'answer 503': ['retried HTTP_503', http('503')],
    'answer 504': ['retried HTTP_504', http('504')],
    'database: serialization': ['retried 40001', () => raise('40001')],
    'database: shutting down': ['retried 57P01', () => raise('57P01')],
    'anything unknown': ['retried HANDLER_ERROR', () => Promise.reject(new Error('?'))],
    'answer 400': ['dead HTTP_400', http('400')],
    'answer 401': ['dead HTTP_401', http('401')],
    'answer 403': ['dead HTTP_403', http('403')],
    'answer 404': ['dead HTTP_404', http('404')],
    'answer 409': ['dead HTTP_409', http('409')],
    'answer 422': ['dead HTTP_422', http('422')],
    policy: [
      'dead POLICY_VIOLATION',
      () => Promise.reject(new NonRetryableError('over the limit', { failureCode: 'POLICY_VIOLATION' })),
    ],
    'data mismatch: schema': ['dead ZOD_ERROR', async () => z.object({ price: z.number() }).parse({})],
    'data mismatch: database': ['dead 22P02', () => everbit.pool.query(`select 'KRW'::integer`)],
  }
}

/** Where an exchange was. */
async function closedUrl(): Promise<string> {
  await using exchange = await Exchange.open(asAsked)
  return exchange.url
}

/** What became of each first attempt, by aggregate. */
function outcomesOf(everbit: System<EverbitEvents>): Record<string, string> {
  const told = [...everbit.toldOf('retried'), ...everbit.toldOf('dead')]
  expect(told.filter(({ attempt }) => attempt !== 1)).toEqual([])
  return Object.fromEntries(
    told.map(({ kind, event, failure }) => [event.aggregateId, `${kind} ${failure.code}`]),
  )
}

/** exponential({ base: '500ms', factor: 2, cap: '60s', jitter: 0.2 }) with the seed 11. */
const EXACT = [502, 1_012, 2_086, 4_144, 9_122, 16_243, 26_624, 60_732, 62_586, 58_808]

describe('failures of everbit', () => {
  test('E10 what may heal is retried, and what cannot is dead at once', async () => {
    await using everbit = await openEverbit()
    await using exchange = await Exchange.open(asAsked)
    const failures = failuresOf(everbit, { there: exchange.url, gone: await closedUrl() })
    await everbit.run([
      subscription('backtest', {
        retry: { delayMs: () => 600_000 },
        concurrency: 30,
        on: { RunBacktest: (event) => failures[event.payload.jobId]?.[1]() },
      }),
    ])
    for (const jobId of Object.keys(failures)) {
      await everbit.publish('RunBacktest', { aggregateId: jobId, payload: { jobId } })
    }
    const expected = Object.fromEntries(Object.entries(failures).map(([name, [outcome]]) => [name, outcome]))
    await eventually(
      'every first attempt is over',
      () => Object.keys(outcomesOf(everbit)).length === Object.keys(expected).length,
    )
    expect(outcomesOf(everbit)).toEqual(expected)
  })

  test('E10 a handler that takes too long is retried, and told to stop', async () => {
    await using everbit = await openEverbit()
    const reasons: unknown[] = []
    await everbit.run([
      subscription('backtest', {
        timeoutMs: 200,
        retry: { delayMs: () => 600_000 },
        on: {
          RunBacktest: async (_event, ctx) => {
            ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
            await new Promise(() => {})
          },
        },
      }),
    ])
    await everbit.publish('RunBacktest', { aggregateId: 'j', payload: { jobId: 'j' } })
    await eventually('it has failed', () => everbit.toldOf('retried').length === 1)
    expect(everbit.toldOf('retried')).toMatchObject([{ failure: { code: 'HANDLER_TIMEOUT' } }])
    expect(reasons).toMatchObject([{ code: 'HANDLER_TIMEOUT' }])
  })

  test('E10 a destination that says when to come back is not asked before', async () => {
    await using everbit = await openEverbit()
    await using exchange = await Exchange.open(asAsked)
    await everbit.run([
      subscription('backtest', { on: { RunBacktest: () => postOrder(exchange.url, '429-30') } }),
    ])
    const eventId = await everbit.publish('RunBacktest', { aggregateId: 'j', payload: { jobId: 'j' } })
    await eventually('it has failed', () => everbit.toldOf('retried').length === 1)
    expect(everbit.toldOf('retried')[0]?.delayMs).toBeGreaterThanOrEqual(30_000)
    expect(everbit.toldOf('retried')[0]?.delayMs).toBeLessThanOrEqual(33_000)
    const row = await everbit.delivery(eventId)
    expect((row?.next_retry_at?.getTime() ?? 0) - (row?.last_attempt_at?.getTime() ?? 0)).toBeGreaterThan(
      29_999,
    )
  })

  test('E10 a stored payload that does not fit is a data mismatch: dead, and its handler never sees it', async () => {
    await using everbit = await openEverbit()
    const runs: unknown[] = []
    await everbit.run([subscription('backtest', { on: { RunBacktest: (event) => void runs.push(event) } })])
    await everbit.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       values ('everbit.backtest.command', 'RunBacktest', 'backtest_job', 'j', '{"jobId": 7}')`,
    )
    await everbit.untilSettled()
    expect(await everbit.outbox.deadLetters.list()).toMatchObject([
      { errorCode: 'PAYLOAD_INVALID', retryCount: 0 },
    ])
    expect(runs).toEqual([])
  })

  test.each([
    ['does not answer in time', 'silence', 3_000],
    ['answers with 500', '500', 20_000],
    ['answers with 503', '503', 20_000],
  ])(
    'E10 an order is never sent again when the exchange %s: it is UNKNOWN until reconciled',
    async (_, asked, timeoutMs) => {
      await using everbit = await openEverbit()
      await using exchange = await Exchange.open((request, response) => {
        if (request.method === 'GET') return void response.writeHead(200).end()
        answer(asked)(request, response)
      })
      const attemptStatus = () => everbit.value<string>('select status from order_attempt')
      await everbit.run([
        orderExecutor(everbit, { url: exchange.url, timeoutMs }, { retry: { delayMs: () => 0 }, pollMs: 20 }),
      ])
      const eventId = await placeOrder(everbit, 'intent-1')
      await everbit.untilStatus(eventId, 'DONE')
      expect(await attemptStatus()).toBe('UNKNOWN')
      expect(await everbit.delivery(eventId)).toMatchObject({ attempt_count: 1, last_error_code: null })
      await everbit.run([reconciler(everbit, exchange.url)])
      await eventually('it is reconciled', async () => (await attemptStatus()) === 'ACKED')
      expect(exchange.orders).toEqual(['everbit-intent-1-1'])
    },
  )

  test('E10 a throttled order ends THROTTLED, and a refused one REJECTED', async () => {
    await using everbit = await openEverbit()
    await using exchange = await Exchange.open((request, response) => {
      response.writeHead(request.url?.includes('throttled') === true ? 429 : 400).end()
    })
    await everbit.run([orderExecutor(everbit, exchange)])
    const throttled = await placeOrder(everbit, 'throttled')
    const refused = await placeOrder(everbit, 'refused')
    await everbit.untilStatus(throttled, 'DONE')
    await everbit.untilStatus(refused, 'DONE')
    expect(await everbit.rows('select order_intent_id, status from order_attempt order by 1')).toEqual([
      { order_intent_id: 'refused', status: 'REJECTED' },
      { order_intent_id: 'throttled', status: 'THROTTLED' },
    ])
    expect(exchange.orders).toHaveLength(2)
  })

  test('E10 an order that certainly did not reach the exchange is retried', async () => {
    await using everbit = await openEverbit()
    const away = await Exchange.open(asAsked)
    const { url } = away
    await away[Symbol.asyncDispose]()
    await everbit.run([orderExecutor(everbit, { url }, { retry: { delayMs: () => 600_000 } })])
    const eventId = await placeOrder(everbit, 'intent-1')
    await eventually('it has failed', () => everbit.toldOf('retried').length === 1)
    expect(await everbit.delivery(eventId)).toMatchObject({ status: 'PENDING', attempt_count: 1 })
    expect(await everbit.value('select status from order_attempt')).toBe('PREPARED')
  })

  test('E11 the back-off doubles from its base to its cap, and chance moves it by a fifth at most', () => {
    const command = exponential({ base: '500ms', factor: 2, cap: '60s', jitter: 0.2 })
    const event = exponential({ base: '1s', factor: 2, cap: '300s', jitter: 0.2 })
    const delays = (backoff: typeof command, random: () => number): number[] =>
      Array.from({ length: 10 }, (_, failed) => backoff.delayMs(failed + 1, random))
    const plain = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]
    expect(delays(command, () => 0.5)).toEqual(plain)
    expect(delays(command, () => 0)).toEqual(plain.map((ms) => ms * 0.8))
    expect(delays(event, () => 0.5).slice(-3)).toEqual([128_000, 256_000, 300_000])
    // The same seed gives the same delays on every machine.
    expect(delays(command, seededRandom(11))).toEqual(EXACT)
    for (const [n, ms] of delays(command, seededRandom(7)).entries()) {
      expect(Math.abs(ms / (plain[n] as number) - 1)).toBeLessThanOrEqual(0.2)
    }
  })

  test('E11 each stream has its own back-off, and it is what the column says', async () => {
    await using everbit = await openEverbit({ random: () => 0.25 })
    const away = () => Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }))
    await everbit.run([
      subscription('backtest', {
        maxAttempts: 10,
        retry: exponential({ base: '500ms', factor: 2, cap: '2s', jitter: 0.2 }),
        on: { RunBacktest: away },
      }),
      subscription('system', {
        maxAttempts: 10,
        retry: exponential({ base: '1s', factor: 2, cap: '300s', jitter: 0.2 }),
        on: { KillSwitchEnabled: away },
      }),
    ])
    await everbit.publish('RunBacktest', { aggregateId: 'j', payload: { jobId: 'j' } })
    const id = await everbit.publish('KillSwitchEnabled', { aggregateId: 'o', payload: { reason: 'r' } })
    const told = (name: string) => everbit.toldOf('retried').filter((event) => event.subscription === name)
    for (const round of [1, 2, 3, 4, 5]) {
      if (round > 1) await everbit.passRetryDelays()
      await eventually(
        'both have failed',
        () => told('backtest').length >= round && told('system').length >= round,
      )
    }
    // 0.25 of the way from -20 % to +20 %: ten percent less.
    // The shorter pauses may have been over by themselves meanwhile.
    const backtest = told('backtest').map(({ delayMs }) => delayMs)
    expect(backtest.slice(0, 5)).toEqual([450, 900, 1_800, 1_800, 1_800])
    expect(
      told('system')
        .map(({ delayMs }) => delayMs)
        .slice(0, 5),
    ).toEqual([900, 1_800, 3_600, 7_200, 14_400])
    const system = await everbit.delivery(id)
    const pauseMs = (system?.next_retry_at?.getTime() ?? 0) - (system?.updated_at.getTime() ?? 0)
    expect(Math.abs(pauseMs - 14_400)).toBeLessThan(500)
  })
})
