import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { chained, createOutbox, fixed } from '../../src/index.ts'
import { openTelemetry } from '../../src/observe/otel/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { ATTRIBUTES, type EverbitEvents, everbitEvents, openEverbit } from './everbit-system.ts'
import { eventually, type System } from './support.ts'
import { idOf, parentOf, TraceRecorder, traceOf } from './tracing-support.ts'

let traces: TraceRecorder
let system: System<EverbitEvents>

beforeEach(async () => {
  traces = new TraceRecorder()
  system = await openEverbit({ tracing: openTelemetry() })
})
afterEach(async () => {
  await system[Symbol.asyncDispose]()
  traces[Symbol.dispose]()
})

const accepted = { aggregateId: 'a', headers: ATTRIBUTES, payload: { identifier: 'a' } } as const
const filled = { aggregateId: 'a', headers: ATTRIBUTES, payload: { identifier: 'a', volume: '1' } } as const
const PUBLISH = 'publish everbit.trade.event'
const PROCESS = 'process everbit.trade.event'

const headersOf = (type: string): Promise<Readonly<Record<string, string>>> =>
  system.value('select headers from outbox_event where event_type = $1', [type])

describe('traces', () => {
  test('E7 E15 the trace goes from the publishing span through the table to the span of the handler', async () => {
    const mailer = system.outbox.subscription('notification', {
      on: { OrderAccepted: async () => undefined },
    })
    await system.run([mailer])
    const eventId = await traces.inSpan('POST /orders', () => system.publish('OrderAccepted', accepted))
    await eventually('the handler has its span', () => traces.named(PROCESS).length === 1)

    const [request] = traces.named('POST /orders')
    const [publish] = traces.named(PUBLISH)
    const [handler] = traces.named(PROCESS)
    expect(parentOf(publish)).toBe(idOf(request))
    expect(parentOf(handler)).toBe(idOf(publish))
    expect(new Set([request, publish, handler].map(traceOf)).size).toBe(1)
    expect((await headersOf('OrderAccepted'))['traceparent']).toBe(
      `00-${traceOf(publish)}-${idOf(publish)}-01`,
    )

    expect(publish?.kind).toBe(SpanKind.PRODUCER)
    expect(publish?.attributes).toEqual({
      'messaging.system': 'commitpost',
      'messaging.operation.name': 'publish',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'everbit.trade.event',
      'messaging.message.id': eventId,
      'commitpost.event.type': 'OrderAccepted',
    })
    expect(handler?.kind).toBe(SpanKind.CONSUMER)
    expect(handler?.attributes).toEqual({
      'messaging.system': 'commitpost',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'everbit.trade.event',
      'messaging.consumer.group.name': 'notification',
      'messaging.message.id': eventId,
      'commitpost.event.type': 'OrderAccepted',
      'commitpost.aggregate.type': 'order_attempt',
      'commitpost.aggregate.id': 'a',
      'commitpost.attempt': 1,
      'commitpost.max_attempts': 5,
    })
  })

  test('E7 every retry is a span of its own below the same publish, and tells why it failed', async () => {
    const mailer = system.outbox.subscription('notification', {
      retry: fixed('1ms'),
      on: {
        OrderAccepted: async (_, { attempt }) => {
          if (attempt < 3) throw new TypeError(`attempt ${attempt} failed`)
        },
      },
    })
    await system.run([mailer])
    await system.publish('OrderAccepted', accepted)
    await eventually('three attempts were made', () => traces.named(PROCESS).length === 3)

    const [publish] = traces.named(PUBLISH)
    const attempts = traces.named(PROCESS)
    expect(attempts.map(parentOf)).toEqual([idOf(publish), idOf(publish), idOf(publish)])
    expect(attempts.map(({ attributes }) => attributes['commitpost.attempt'])).toEqual([1, 2, 3])
    expect(attempts.map(({ attributes }) => attributes['error.type'])).toEqual([
      'TypeError',
      'TypeError',
      undefined,
    ])
    expect(attempts.map(({ status }) => status)).toEqual([
      { code: SpanStatusCode.ERROR, message: 'TypeError: attempt 1 failed' },
      { code: SpanStatusCode.ERROR, message: 'TypeError: attempt 2 failed' },
      { code: SpanStatusCode.UNSET },
    ])
  })

  test.each(['ctx.publish', 'chained'])(
    'U3 E7 an event that a handler publishes by %s is below the span of that handler, in the same trace',
    async (way) => {
      const { outbox, pool } = system
      const executor = outbox.subscription('order-executor', {
        on: {
          OrderAccepted: async (event, ctx) => {
            await outbox.inTransaction(pool, (tx) =>
              way === 'chained'
                ? outbox.publish(tx, 'OrderFilled', {
                    ...filled,
                    headers: { ...ATTRIBUTES, ...chained(event) },
                  })
                : ctx.publish(tx, 'OrderFilled', filled),
            )
          },
          OrderFilled: () => undefined,
        },
      })
      await system.run([executor])
      await system.publish('OrderAccepted', accepted)
      await eventually('both were handled', () => traces.named(PROCESS).length === 2)

      const [first, second] = traces.named(PUBLISH)
      const [handlerOfFirst, handlerOfSecond] = traces.named(PROCESS)
      expect(parentOf(handlerOfFirst)).toBe(idOf(first))
      expect(parentOf(second)).toBe(idOf(handlerOfFirst))
      expect(parentOf(handlerOfSecond)).toBe(idOf(second))
      expect(new Set([first, second, handlerOfFirst, handlerOfSecond].map(traceOf)).size).toBe(1)
    },
  )

  test('E7 a trace that the publisher names itself is kept, as is its tracestate', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const mailer = system.outbox.subscription('notification', { on: { OrderAccepted: () => undefined } })
    await system.run([mailer])
    await system.publish('OrderAccepted', { ...accepted, traceparent, tracestate: 'vendor=7' })
    await eventually('the handler has its span', () => traces.named(PROCESS).length === 1)

    const [handler] = traces.named(PROCESS)
    expect(traceOf(handler)).toBe('0af7651916cd43dd8448eb211c80319c')
    expect(parentOf(handler)).toBe('b7ad6b7169203331')
    expect(handler?.parentSpanContext?.isRemote).toBe(true)
    expect(handler?.spanContext().traceState?.serialize()).toBe('vendor=7')
  })

  test('a batch is one span, and a publish that is refused says so', async () => {
    await system.outbox.inTransaction(system.pool, (tx) =>
      system.outbox.publishAll(tx, [
        { type: 'OrderAccepted', ...accepted },
        { type: 'KillSwitchEnabled', aggregateId: 'o', payload: { reason: 'x' } },
      ]),
    )
    const [batch] = traces.named('publish')
    expect(batch?.attributes['messaging.batch.message_count']).toBe(2)
    const parents = await system.rows<{ parent: string }>(
      `select headers ->> 'traceparent' as parent from outbox_event`,
    )
    expect(parents.map(({ parent }) => parent.split('-')[2])).toEqual([idOf(batch), idOf(batch)])

    await expect(
      system.publish('OrderAccepted', { ...accepted, payload: { identifier: 7 as unknown as string } }),
    ).rejects.toThrow('identifier')
    const [refused] = traces.named(PUBLISH)
    expect(refused?.status.code).toBe(SpanStatusCode.ERROR)
    expect(refused?.attributes['error.type']).toBe('PAYLOAD_INVALID')
  })

  test('without a registered provider nothing is traced, and traces that events carry go on', async () => {
    traces[Symbol.dispose]()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const outbox = createOutbox({
      store: postgresStore({ pool: system.pool, schema: system.schema }),
      events: everbitEvents,
      tracing: openTelemetry(),
    })
    const executor = outbox.subscription('order-executor', {
      on: {
        OrderAccepted: async (_, ctx) => {
          await outbox.inTransaction(system.pool, (tx) => ctx.publish(tx, 'OrderFilled', filled))
        },
      },
    })
    const worker = outbox.worker([executor])
    await worker.active()
    const eventId = await outbox.inTransaction(system.pool, (tx) =>
      outbox.publish(tx, 'OrderAccepted', { ...accepted, traceparent }),
    )
    await system.untilStatus(eventId, 'DONE')
    await worker.stop()
    expect((await headersOf('OrderFilled'))['traceparent']).toBe(traceparent)
    expect(traces.named(PROCESS)).toEqual([])
  })
})
