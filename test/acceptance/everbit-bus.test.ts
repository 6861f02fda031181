import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import {
  createClassify,
  createDispatcher,
  type EventBus,
  type EventDispatcher,
  fromEnvelope,
  type HandlerMap,
  type Logger,
  NonRetryableError,
  type OutboxEvent,
  subscription,
  systemClock,
  toEnvelope,
} from '../../src/index.ts'
import { type EverbitEvents, everbitEvents, openEverbit } from './everbit-system.ts'
import { eventually } from './support.ts'

/** One record of a Kafka topic. */
interface KafkaRecord {
  readonly topic: string
  readonly key: string
  readonly value: string
}

/** The domain. It knows the interface and nothing behind it. */
class OrderService<Tx> {
  readonly #bus: EventBus<EverbitEvents, Tx>

  constructor(bus: EventBus<EverbitEvents, Tx>) {
    this.#bus = bus
  }

  accept(tx: Tx, identifier: string): Promise<string> {
    return this.#bus.publish(tx, 'OrderAccepted', {
      aggregateId: identifier,
      payload: { identifier },
      headers: { market: 'KRW-BTC' },
    })
  }
}

/** A bus that writes to a topic, for where there is no transaction to be atomic with. */
function kafkaBus(topic: KafkaRecord[]): EventBus<EverbitEvents, null> {
  const bus: EventBus<EverbitEvents, null> = {
    publish: async (_, type, { aggregateId, payload, headers = {}, eventId = randomUUID() }) => {
      const { stream = '', version = 1 } = everbitEvents.find(type) ?? {}
      const envelope = { schemaVersion: version, eventId, type, occurredAt: new Date(), ...headers, payload }
      topic.push({ topic: stream, key: String(aggregateId), value: JSON.stringify(envelope) })
      return eventId
    },
    publishAll: (_, inputs) =>
      Promise.all(inputs.map(({ type, ...input }) => bus.publish(null, type, input as never))),
  }
  return bus
}

/** What a Kafka consumer makes of a record before it hands it to the dispatcher. */
function eventOf({ topic, key, value }: KafkaRecord): OutboxEvent {
  const contents = fromEnvelope(JSON.parse(value))
  return {
    ...contents,
    stream: topic,
    position: '0',
    aggregateType: 'order_attempt',
    aggregateId: key,
    orderingKey: key,
    sequence: null,
    createdAt: contents.occurredAt,
  }
}

type FromKafka = {
  readonly event: OutboxEvent
  readonly attempt: number
  readonly maxAttempts: number
  readonly lease: null
}

function kafkaDispatcher(handlers: object): EventDispatcher<FromKafka> {
  return createDispatcher<FromKafka>({
    subscription: 'notification',
    handlers: handlers as HandlerMap,
    classify: createClassify(systemClock),
    reader: everbitEvents,
  })
}

/** The handlers of the notification worker, written once. */
function notificationHandlers(pool: Pool, pushed: string[]) {
  return {
    OrderAccepted: async (
      event: OutboxEvent<'OrderAccepted', { readonly identifier: string }>,
      ctx: { readonly log: Logger },
    ): Promise<void> => {
      const { identifier } = event.payload
      if (identifier === 'unsubscribed') throw new NonRetryableError('the device is gone')
      const { rowCount } = await pool.query(
        'insert into notification_log (event_id) values ($1) on conflict (event_id) do nothing',
        [event.eventId],
      )
      ctx.log.info({ identifier }, 'push')
      if (rowCount === 1) pushed.push(identifier)
    },
  }
}

describe('the bus of everbit', () => {
  test('E16 the domain depends on EventBus only: outbox and Kafka take each other’s place', async () => {
    await using everbit = await openEverbit()
    const { outbox, pool } = everbit
    const topic: KafkaRecord[] = []
    const eventId = await outbox.inTransaction(pool, (tx) => new OrderService(outbox).accept(tx, 'order-1'))
    const sentId = await new OrderService(kafkaBus(topic)).accept(null, 'order-1')
    expect(
      await everbit.rows('select event_id, stream, event_type, aggregate_id, payload from outbox_event'),
    ).toEqual([
      {
        event_id: eventId,
        stream: 'everbit.trade.event',
        event_type: 'OrderAccepted',
        aggregate_id: 'order-1',
        payload: { identifier: 'order-1' },
      },
    ])
    expect(topic.map(eventOf)).toMatchObject([
      {
        eventId: sentId,
        stream: 'everbit.trade.event',
        type: 'OrderAccepted',
        aggregateId: 'order-1',
        payload: { identifier: 'order-1' },
        headers: { market: 'KRW-BTC' },
      },
    ])
  })

  test('E16 the same handlers run for the outbox worker and for a Kafka consumer', async () => {
    await using everbit = await openEverbit()
    const { outbox, pool } = everbit
    const pushed: string[] = []
    const handlers = notificationHandlers(pool, pushed)
    await everbit.run([subscription('notification', { on: handlers })])
    await outbox.inTransaction(pool, (tx) => new OrderService(outbox).accept(tx, 'by-outbox'))
    await eventually('the worker has pushed', () => pushed.includes('by-outbox'))

    const topic: KafkaRecord[] = []
    await new OrderService(kafkaBus(topic)).accept(null, 'by-kafka')
    const dispatcher = kafkaDispatcher(handlers)
    for (const record of topic) {
      const outcome = await dispatcher.dispatch({
        event: eventOf(record),
        attempt: 1,
        maxAttempts: 5,
        lease: null,
      })
      expect(outcome).toEqual({ kind: 'handled' })
    }
    expect(pushed).toEqual(['by-outbox', 'by-kafka'])
  })

  test('E16 an event that comes by both roads has one effect, and both roads judge failures alike', async () => {
    await using everbit = await openEverbit()
    const pushed: string[] = []
    const handlers = notificationHandlers(everbit.pool, pushed)
    const arrived: OutboxEvent[] = []
    await everbit.run([
      subscription('notification', { on: handlers }),
      // What forwards events to Kafka during the move: the envelope is all that travels.
      everbit.outbox.subscription('to-kafka', {
        streams: ['everbit.trade.event'],
        on: { '*': (event) => void arrived.push(event) },
      }),
    ])
    for (const identifier of ['order-1', 'unsubscribed']) {
      await everbit.publish('OrderAccepted', { aggregateId: identifier, payload: { identifier } })
    }
    await everbit.untilSettled()
    const dispatcher = kafkaDispatcher(handlers)
    const outcomes: Record<string, unknown> = {}
    for (const event of arrived) {
      const record = { topic: event.stream, key: event.aggregateId, value: JSON.stringify(toEnvelope(event)) }
      const delivery = { event: eventOf(record), attempt: 1, maxAttempts: 5, lease: null }
      outcomes[event.aggregateId] = await dispatcher.dispatch(delivery)
    }
    expect(pushed).toEqual(['order-1'])
    expect(outcomes).toMatchObject({
      'order-1': { kind: 'handled' },
      unsubscribed: { kind: 'failed', failure: { code: 'NON_RETRYABLE' }, retry: { kind: 'never' } },
    })
    await everbit.untilTold('dead')
    expect(everbit.toldOf('dead')).toMatchObject([{ failure: { code: 'NON_RETRYABLE' } }])
  })
})
