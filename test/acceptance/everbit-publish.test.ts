import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  DuplicateEventError,
  defineEvents,
  fromEnvelope,
  InvalidOptionsError,
  type OutboxEvent,
  subscription,
  toEnvelope,
} from '../../src/index.ts'
import { ATTRIBUTES, everbitEvents, MARKET_DATA, openEverbit, STREAMS } from './everbit-system.ts'
import { eventually, rejection } from './support.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const intent = { orderIntentId: 'intent-1', attemptNo: 1, identifier: 'everbit-intent-1-1' }

describe('publishing of everbit', () => {
  test('E1 signal, order intent and command are committed together', async () => {
    await using everbit = await openEverbit()
    const { outbox, pool } = everbit
    await outbox.inTransaction(pool, async (tx) => {
      await tx.query(`insert into signal (strategy_key, market) values ('EXTREME_FLIP', 'KRW-BTC')`)
      await tx.query(`insert into order_intent values ('intent-1', 'KRW-BTC', 'BUY')`)
      await outbox.publish(tx, 'CreateOrderAttempt', { aggregateId: 'intent-1', payload: intent })
    })
    expect(await everbit.count('signal')).toBe(1)
    expect(await everbit.count('order_intent')).toBe(1)
    expect(
      await everbit.rows(
        'select stream, event_type, aggregate_type, aggregate_id, payload from outbox_event',
      ),
    ).toEqual([
      {
        stream: 'everbit.trade.command',
        event_type: 'CreateOrderAttempt',
        aggregate_type: 'order_intent',
        aggregate_id: 'intent-1',
        payload: intent,
      },
    ])
  })

  test('E1 a rollback leaves neither the order intent nor the command', async () => {
    await using everbit = await openEverbit()
    const { outbox, pool } = everbit
    const handled: string[] = []
    await everbit.run([
      subscription('order-executor', {
        streams: ['everbit.trade.command'],
        on: { CreateOrderAttempt: (event) => void handled.push(event.aggregateId) },
      }),
    ])
    const place = (id: string, fails: boolean): Promise<void> =>
      outbox.inTransaction(pool, async (tx) => {
        await tx.query(`insert into order_intent values ($1, 'KRW-BTC', 'BUY')`, [id])
        await outbox.publish(tx, 'CreateOrderAttempt', { aggregateId: id, payload: intent })
        if (fails) throw new Error('the risk check refused the order')
      })
    await expect(place('refused', true)).rejects.toThrow('the risk check refused the order')
    await place('accepted', false)
    await everbit.untilSettled()
    expect(handled).toEqual(['accepted'])
    expect(await everbit.rows('select id from order_intent')).toEqual([{ id: 'accepted' }])
    expect(await everbit.rows('select aggregate_id from outbox_event')).toEqual([
      { aggregate_id: 'accepted' },
    ])
  })

  test('E1 an event that would not be part of any transaction is refused', async () => {
    await using everbit = await openEverbit()
    const { outbox, pool } = everbit
    const input = { aggregateId: 'intent-1', payload: intent }
    // @ts-expect-error a pool is no transaction
    await expect(outbox.publish(pool, 'CreateOrderAttempt', input)).rejects.toMatchObject({
      code: 'NOT_IN_TRANSACTION',
    })
    const client = await pool.connect()
    await expect(outbox.publish(client, 'CreateOrderAttempt', input)).rejects.toMatchObject({
      code: 'NOT_IN_TRANSACTION',
    })
    client.release()
    expect(await everbit.count('outbox_event')).toBe(0)
  })

  test('E1 the queue is durable without a broker: what is committed while no worker runs is delivered later', async () => {
    await using everbit = await openEverbit()
    const handled: string[] = []
    const executor = () =>
      everbit.outbox.subscription('order-executor', {
        on: { CreateOrderAttempt: (event) => void handled.push(event.aggregateId) },
      })
    const first = await everbit.run([executor()])
    await first.stop()
    await everbit.publish('CreateOrderAttempt', { aggregateId: 'intent-1', payload: intent })
    expect(await everbit.count('outbox_delivery', "status = 'PENDING'")).toBe(1)
    await everbit.runElsewhere([executor()])
    await everbit.untilSettled()
    expect(handled).toEqual(['intent-1'])
  })

  test('E1 ticker, orderbook and trade data are refused by the catalogue', async () => {
    const define = () =>
      defineEvents(
        {
          TickerUpdated: { stream: 'everbit.market.event', aggregate: 'market' },
          OrderbookChanged: { stream: 'everbit.market.event', aggregate: 'market' },
          PriceMoved: { stream: 'upbit.trade', aggregate: 'market' },
        },
        { refuse: MARKET_DATA },
      )
    expect(define).toThrow(InvalidOptionsError)
    for (const name of ['TickerUpdated', 'OrderbookChanged', 'PriceMoved']) {
      expect(define).toThrow(`${name}: is refused: high-frequency market data is not for the outbox`)
    }
    await using everbit = await openEverbit()
    for (const name of ['TickerUpdated', 'OrderbookChanged', 'TradeExecuted']) {
      const refused = everbit.publish(name as 'OrderAccepted', {
        aggregateId: 'KRW-BTC',
        payload: { identifier: 'x' },
      })
      expect(await rejection(refused)).toMatchObject({
        code: 'EVENT_REFUSED',
        message: expect.stringContaining('high-frequency market data is not for the outbox'),
      })
    }
    expect(await everbit.count('outbox_event')).toBe(0)
  })

  test('E4 the five streams exist under the names that Kafka can take unchanged', async () => {
    await using everbit = await openEverbit()
    expect([...new Set(everbitEvents.events.map(({ stream }) => stream))]).toEqual(STREAMS)
    const taken: Record<string, string[]> = {}
    await everbit.run(
      STREAMS.map((stream) =>
        everbit.outbox.subscription(`all-of-${stream}`, {
          streams: [stream],
          on: { '*': (event) => void (taken[stream] ??= []).push(event.stream) },
        }),
      ),
    )
    const { outbox, pool } = everbit
    await outbox.inTransaction(pool, (tx) =>
      outbox.publishAll(tx, [
        { type: 'CreateOrderAttempt', aggregateId: 'i', payload: intent },
        { type: 'OrderFilled', aggregateId: 'a', payload: { identifier: 'a', volume: '0.1' } },
        { type: 'RunBacktest', aggregateId: 'j', payload: { jobId: 'j' } },
        { type: 'BacktestCompleted', aggregateId: 'j', payload: { jobId: 'j', profitRate: 0.03 } },
        { type: 'KillSwitchEnabled', aggregateId: 'OWNER', payload: { reason: 'manual' } },
      ]),
    )
    await everbit.untilSettled()
    expect(taken).toEqual(Object.fromEntries(STREAMS.map((stream) => [stream, [stream]])))
    // The rule of Kafka itself (org.apache.kafka.common.internals.Topic): the catalogue holds every stream to it.
    for (const stream of STREAMS) expect(stream).toMatch(/^[a-zA-Z0-9._-]{1,249}$/)
    expect(() => defineEvents({ OrderFilled: { stream: 'everbit/trade event', aggregate: 'a' } })).toThrow(
      'OrderFilled',
    )
  })

  test('E5 every event has a unique UUID, which the publisher gets and the handler sees', async () => {
    await using everbit = await openEverbit()
    const seen: string[] = []
    await everbit.run([
      subscription('notification', { on: { OrderAccepted: (event) => void seen.push(event.eventId) } }),
    ])
    const input = { aggregateId: 'a-1', payload: { identifier: 'a-1' } }
    const ids = [await everbit.publish('OrderAccepted', input), await everbit.publish('OrderAccepted', input)]
    await everbit.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       values ('everbit.trade.event', 'OrderAccepted', 'order_attempt', 'a-2', '{"identifier": "a-2"}')`,
    )
    await eventually('all three are seen', () => seen.length === 3)
    expect(new Set(seen).size).toBe(3)
    expect(seen).toEqual(expect.arrayContaining(ids))
    for (const id of seen) expect(id).toMatch(UUID)
  })

  test('E5 a second event with the same id is refused, or recognised as a repetition', async () => {
    await using everbit = await openEverbit()
    const input = { eventId: randomUUID(), aggregateId: 'a-1', payload: { identifier: 'a-1' } }
    await everbit.publish('OrderAccepted', input)
    const refused = await rejection(everbit.publish('OrderAccepted', input))
    expect(refused).toBeInstanceOf(DuplicateEventError)
    expect(refused).toMatchObject({ eventIds: [input.eventId] })
    expect(await everbit.publish('OrderAccepted', { ...input, onDuplicate: 'ignore' })).toBe(input.eventId)
    const columns = 'event_id, stream, event_type, aggregate_type, aggregate_id, payload'
    const bySql = everbit.pool.query(
      `insert into outbox_event (${columns}) select ${columns} from outbox_event`,
    )
    await expect(bySql).rejects.toMatchObject({ code: '23505' })
    expect(await everbit.count('outbox_event')).toBe(1)
  })

  test('E5 of many publishers that use one id at the same time, one succeeds', async () => {
    await using everbit = await openEverbit()
    const input = { eventId: randomUUID(), aggregateId: 'a-1', payload: { identifier: 'a-1' } }
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => everbit.publish('OrderAccepted', input)),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await everbit.count('outbox_event')).toBe(1)
  })

  test('E7 the envelope has the fields of the seed, and one fixed form in the table', async () => {
    await using everbit = await openEverbit()
    const events: OutboxEvent[] = []
    await everbit.run([
      subscription('order-executor', { on: { CreateOrderAttempt: (event) => void events.push(event) } }),
    ])
    const occurredAt = new Date('2026-02-17T00:00:00.000Z')
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
    const eventId = await everbit.publish('CreateOrderAttempt', {
      aggregateId: 'intent-1',
      payload: intent,
      occurredAt,
      traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
      headers: ATTRIBUTES,
    })
    await eventually('the event is handled', () => events.length === 1)
    const envelope = toEnvelope(events[0] as OutboxEvent)
    expect(envelope).toEqual({
      schemaVersion: 1,
      eventId,
      type: 'CreateOrderAttempt',
      occurredAt: '2026-02-17T00:00:00.000Z',
      traceId,
      ...ATTRIBUTES,
      payload: intent,
    })
    expect(fromEnvelope(JSON.parse(JSON.stringify(envelope)))).toEqual({
      schemaVersion: 1,
      eventId,
      type: 'CreateOrderAttempt',
      occurredAt,
      headers: { traceId, ...ATTRIBUTES },
      payload: intent,
    })
    // Payload and attributes stand apart in the table, always: nobody has to guess which form a row has.
    expect(
      await everbit.rows('select payload, headers - $1::text as headers from outbox_event', ['traceparent']),
    ).toEqual([{ payload: intent, headers: ATTRIBUTES }])
  })

  test('E7 a trace id may also be a plain UUID', async () => {
    await using everbit = await openEverbit()
    const events: OutboxEvent[] = []
    await everbit.run([
      subscription('system', { on: { KillSwitchEnabled: (event) => void events.push(event) } }),
    ])
    const traceId = randomUUID()
    await everbit.publish('KillSwitchEnabled', {
      aggregateId: 'OWNER',
      payload: { reason: 'manual' },
      headers: { traceId },
    })
    await eventually('the event is handled', () => events.length === 1)
    expect(toEnvelope(events[0] as OutboxEvent)).toMatchObject({ traceId })
  })
})
