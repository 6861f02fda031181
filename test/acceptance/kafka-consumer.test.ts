import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Transaction } from '../../src/index.ts'
import { defineEvents, fixed, NonRetryableError, relay } from '../../src/index.ts'
import {
  createKafkaConsumer,
  createKafkaEventBus,
  deadLetterTopic,
  type KafkaConsumerOptions,
  type KafkaEventBus,
  kafka,
  sequenceChecker,
} from '../../src/kafka/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient, comes } from '../support/patience.ts'
import { TestKafka } from './kafka-support.ts'
import { openSystem } from './support.ts'

bePatient()

const catalogue = (stream: string) =>
  defineEvents({
    OrderPlaced: {
      stream,
      aggregate: 'order',
      version: 2,
      schema: z.object({ amount: z.number(), currency: z.string() }),
      upcast: { 1: (old) => ({ ...old, currency: 'KRW' }) },
      sequence: true,
    },
    OrderShipped: { stream, aggregate: 'order', schema: z.object({ by: z.string() }) },
  })
type Events = ReturnType<typeof catalogue>
type Options = KafkaConsumerOptions<Events, Transaction>

describe.skipIf(!kafkaAvailable())('a consumer of a real Kafka', () => {
  let broker: TestKafka

  beforeAll(async () => {
    broker = await TestKafka.start()
  })
  afterAll(async () => {
    await broker[Symbol.asyncDispose]()
  })

  const newBus = (events: Events): KafkaEventBus<Events> =>
    createKafkaEventBus({ events, producer: broker.producer })
  const consumerOf = (topic: string, options: Pick<Options, 'on'> & Partial<Options>) =>
    createKafkaConsumer<Events, Transaction>({
      name: topic,
      consumer: () => broker.client.consumer({ groupId: topic, maxWaitTimeInMs: 50, retry: { retries: 20 } }),
      topics: [topic],
      events: catalogue(topic),
      deadLetters: deadLetterTopic({ producer: broker.producer }),
      retry: fixed(10),
      ...options,
    })

  test('E16 L12 I6 the same event twice has one effect by its id, in the transaction of the handler', async () => {
    await broker.createTopics(['once', 'once.dead'])
    const events = catalogue('once')
    await using system = await openSystem(events, { tables: 'create table effect (id text)' })
    await using bus = newBus(events)
    let calls = 0
    await using consumer = consumerOf('once', {
      store: postgresStore({ pool: system.pool, schema: system.schema }),
      on: {
        OrderPlaced: async (event, ctx) => {
          await ctx.once(system.pool, (tx) => tx.query('insert into effect values ($1)', [event.aggregateId]))
          calls += 1
        },
      },
    })
    await consumer.start()
    const input = { aggregateId: 'o-1', payload: { amount: 1, currency: 'USD' } }
    const eventId = await bus.publish(null, 'OrderPlaced', input)
    await bus.publish(null, 'OrderPlaced', { ...input, eventId })
    await bus.publish(null, 'OrderPlaced', { ...input, aggregateId: 'o-2' })
    await comes('all are handled', () => calls >= 3)
    expect(await system.rows('select id from effect order by id')).toEqual([{ id: 'o-1' }, { id: 'o-2' }])
    await consumer.stop()
    await comes('all are committed', async () => sum(await broker.committed('once', 'once')) === 3)
  })

  test('I6 the same fact under two event ids has one effect by aggregate and sequence', async () => {
    await broker.createTopics(['by-sequence', 'by-sequence.dead'])
    const events = catalogue('by-sequence')
    await using system = await openSystem(events, { tables: 'create table effect (id text)' })
    const headers = (eventId: string, sequence: number): Record<string, string> => ({
      eventId,
      eventType: 'OrderPlaced',
      schemaVersion: '2',
      aggregateId: 'o-1',
      sequence: String(sequence),
    })
    const producer = broker.producer()
    await producer.connect()
    const value = JSON.stringify({ amount: 1, currency: 'USD' })
    const ids = [
      '01890a5d-ac96-774b-bcce-b302099a8051',
      '01890a5d-ac96-774b-bcce-b302099a8052',
      '01890a5d-ac96-774b-bcce-b302099a8053',
    ]
    const messages = [1, 1, 2].map((n, index) => ({
      key: 'o-1',
      value,
      headers: headers(ids[index] ?? '', n),
    }))
    await producer.send({ topic: 'by-sequence', messages })
    await producer.disconnect()
    const checker = sequenceChecker({ fromBeginning: true })
    let calls = 0
    await using consumer = consumerOf('by-sequence', {
      store: postgresStore({ pool: system.pool, schema: system.schema }),
      onceBy: 'sequence',
      sequence: checker,
      on: {
        OrderPlaced: async (event, ctx) => {
          await ctx.once(system.pool, (tx) => tx.query('insert into effect values ($1)', [event.eventId]))
          calls += 1
        },
      },
    })
    await consumer.start()
    await comes('all are handled', () => calls >= 3)
    expect(await system.rows('select id from effect order by id')).toEqual([{ id: ids[0] }, { id: ids[2] }])
    // Kafka may hand something over again: one repeat more for each such call.
    expect(checker.counts).toMatchObject({ next: 2, gap: 0 })
    expect(checker.counts.repeat).toBeGreaterThanOrEqual(1)
  })

  test('L5 D1 D4 upcasting, retries and dead letters are those of a worker, and offsets are committed for what is settled', async () => {
    await broker.createTopics(['cared', 'cared.dead'], {}, 1)
    const events = catalogue('cared')
    const producer = broker.producer()
    await producer.connect()
    const message = (n: number, type: string, version: string, payload: unknown) => ({
      key: `o-${n}`,
      value: typeof payload === 'string' ? payload : JSON.stringify(payload),
      headers: {
        id: `01890a5d-ac96-774b-bcce-b302099a805${n}`,
        eventType: type,
        ...(version === '' ? {} : { schemaVersion: version }),
      },
    })
    await producer.send({
      topic: 'cared',
      messages: [
        message(1, 'OrderPlaced', '1', { amount: 1 }),
        message(2, 'OrderShipped', '', { by: 'sea' }),
        message(3, 'OrderPlaced', '2', { amount: 'no number' }),
        message(4, 'OrderPlaced', '2', 'no JSON'),
        message(5, 'SomethingElse', '', {}),
        message(6, 'OrderPlaced', '2', { amount: 6, currency: 'USD' }),
      ],
    })
    await producer.disconnect()
    const placed: unknown[] = []
    const shipped: number[] = []
    await using consumer = consumerOf('cared', {
      events,
      maxAttempts: 3,
      on: {
        OrderPlaced: ({ payload, aggregateId, stream }) => void placed.push([aggregateId, stream, payload]),
        OrderShipped: (_, ctx) => {
          shipped.push(ctx.attempt)
          if (ctx.attempt < 2) throw new Error('the carrier does not answer')
          throw new NonRetryableError('there is no such carrier', { failureCode: 'NO_CARRIER' })
        },
      },
    })
    await consumer.start()
    await comes('the last is handled', () => placed.length >= 2)
    await consumer.stop()
    expect(placed).toEqual([
      ['o-1', 'cared', { amount: 1, currency: 'KRW' }],
      ['o-6', 'cared', { amount: 6, currency: 'USD' }],
    ])
    expect(shipped).toEqual([1, 2])
    const dead = await broker.read('cared.dead')
    expect(
      dead.map(({ key, headers }) => [key, headers['dead_letter_code'], headers['dead_letter_attempts']]),
    ).toEqual([
      ['o-2', 'NO_CARRIER', '2'],
      ['o-3', 'PAYLOAD_INVALID', '1'],
      ['o-4', 'RECORD_UNREADABLE', '0'],
    ])
    expect(dead[0]).toMatchObject({
      value: '{"by":"sea"}',
      headers: { eventType: 'OrderShipped', dead_letter_topic: 'cared', dead_letter_offset: '1' },
    })
    expect(await broker.committed('cared', 'cared')).toEqual([6])
  })

  test('E9 what is neither handled nor set aside is not committed: the next consumer of the group has it again', async () => {
    await broker.createTopics(['again', 'again.dead'], {}, 1)
    const events = catalogue('again')
    await using bus = newBus(events)
    const inputs = [1, 2, 3].map((n) => ({
      type: 'OrderPlaced' as const,
      aggregateId: `o-${n}`,
      payload: { amount: n, currency: 'KRW' },
    }))
    await bus.publishAll(null, inputs)
    const first: number[] = []
    const stuck = consumerOf('again', {
      on: {
        OrderPlaced: async ({ payload }, { signal }) => {
          first.push(payload.amount)
          if (payload.amount === 2) {
            await new Promise((_, reject) => {
              signal.addEventListener('abort', () => reject(new Error('stopped')))
            })
          }
        },
      },
    })
    await stuck.start()
    await comes('the second is in hand', () => first.length >= 2)
    await stuck.stop({ drainMs: 0 })
    expect(await broker.committed('again', 'again')).toEqual([1])
    const second: number[] = []
    await using next = consumerOf('again', {
      on: { OrderPlaced: ({ payload }) => void second.push(payload.amount) },
    })
    await next.start()
    await comes('the rest is handled', () => second.length >= 2)
    expect(second).toEqual([2, 3])
  })

  test('I1 E16 the payload, an envelope and a CloudEvent of one relay are the same event to a handler', async () => {
    const formats = {
      payload: {},
      envelope: { format: { envelope: { type: 'eventType', occurredAt: 'timestamp' } } },
      binary: { format: { cloudEvents: 'binary', source: '/shop' } },
      structured: { format: { cloudEvents: 'structured', source: '/shop' } },
    } as const
    const topics = Object.keys(formats).map((name) => `as-${name}`)
    await broker.createTopics(topics)
    const events = catalogue('shop')
    await using system = await openSystem(events)
    await system.run(
      Object.entries(formats).map(([name, format]) =>
        relay(name, { via: kafka({ producer: broker.producer, topic: `as-${name}`, ...format }) }),
      ),
    )
    const eventId = await system.publish('OrderPlaced', {
      aggregateId: 'o-1',
      payload: { amount: 1, currency: 'KRW' },
      correlationId: 'c-1',
      headers: { ownerId: 'u-1' },
    })
    const seen = new Map<string, unknown>()
    const options: Pick<Options, 'on' | 'events'> = {
      events,
      on: {
        OrderPlaced: ({ position: _position, createdAt: _createdAt, ...event }, ctx) =>
          void seen.set(ctx.subscription, event),
      },
    }
    const consumers = topics.map((topic) =>
      consumerOf(topic, {
        ...options,
        ...(topic === 'as-envelope' ? { envelope: formats.envelope.format.envelope } : {}),
      }),
    )
    await Promise.all(consumers.map((consumer) => consumer.start()))
    await comes('all four arrive', () => seen.size === 4)
    await Promise.all(consumers.map((consumer) => consumer.stop()))
    const [first, ...others] = topics.map((topic) => seen.get(topic))
    expect(first).toMatchObject({
      eventId,
      type: 'OrderPlaced',
      stream: 'shop',
      schemaVersion: 2,
      aggregateType: 'order',
      aggregateId: 'o-1',
      orderingKey: 'order:o-1',
      sequence: 1,
      payload: { amount: 1, currency: 'KRW' },
      headers: { correlationId: 'c-1', ownerId: 'u-1' },
    })
    for (const other of others) expect(other).toEqual(first)
  })
})

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
