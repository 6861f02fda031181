import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/index.ts'
import { createKafkaEventBus } from '../../src/kafka/index.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient } from '../support/patience.ts'
import { TestKafka } from './kafka-support.ts'

bePatient()

const events = defineEvents({
  OrderPlaced: {
    stream: 'no-such-topic',
    aggregate: 'order',
    schema: z.object({ amount: z.number(), currency: z.string() }),
  },
  OrderPaid: { stream: 'bus', aggregate: 'order', schema: z.object({ amount: z.number() }) },
})

describe.skipIf(!kafkaAvailable())('a bus to a real Kafka', () => {
  let broker: TestKafka

  beforeAll(async () => {
    broker = await TestKafka.start()
    await broker.createTopics(['bus'])
  })
  afterAll(async () => {
    await broker[Symbol.asyncDispose]()
  })

  test('E16 the bus refuses a transaction with advice, and says when Kafka refuses an event', async () => {
    await using bus = createKafkaEventBus({ events, producer: broker.producer })
    const input = { aggregateId: 'o-1', payload: { amount: 1, currency: 'KRW' } }
    const transaction: unknown = { query: async () => ({ rows: [] }) }
    await expect(bus.publish(transaction as null, 'OrderPlaced', input)).rejects.toMatchObject({
      code: 'DUAL_WRITE',
      message: expect.stringContaining('outbox.publish(tx, …)'),
    })
    await expect(bus.publish(null, 'OrderPlaced', { ...input, payload: {} as never })).rejects.toMatchObject({
      code: 'PAYLOAD_INVALID',
    })
    await expect(bus.publish(null, 'OrderPlaced', input)).rejects.toMatchObject({
      code: 'BROKER_REFUSED',
      message: expect.stringContaining('UNKNOWN_TOPIC_OR_PARTITION'),
    })
  })

  test('E16 publishes through the same port where there is no transaction, many at once and in order', async () => {
    await using bus = createKafkaEventBus({ events, producer: broker.producer })
    const inputs = Array.from({ length: 50 }, (_, n) => ({
      type: 'OrderPaid' as const,
      aggregateId: 'o-1',
      payload: { amount: n },
    }))
    const ids = await bus.publishAll(null, inputs)
    const at = new Date('2026-05-01T10:00:00.000Z')
    const last = await bus.publish(null, 'OrderPaid', {
      aggregateId: 'o-1',
      payload: { amount: 50 },
      occurredAt: at,
    })
    const seen = await broker.read('bus')
    expect(seen.map(({ headers }) => headers['eventId'])).toEqual([...ids, last])
    expect(seen.at(-1)).toMatchObject({
      key: 'o-1',
      value: '{"amount":50}',
      headers: { eventType: 'OrderPaid', stream: 'bus', occurredAt: at.toISOString() },
    })
  })

  test('E16 what is published together while Kafka is away arrives when it is back', async () => {
    await using bus = createKafkaEventBus({ events, producer: broker.producer })
    await broker.server.kill()
    const publishing = [1, 2, 3].map((n) =>
      bus.publish(null, 'OrderPaid', { aggregateId: 'o-2', payload: { amount: n } }),
    )
    await broker.server.restart()
    const ids = await Promise.all(publishing)
    const seen = (await broker.read('bus')).filter(({ key }) => key === 'o-2')
    expect(new Set(seen.map(({ headers }) => headers['eventId']))).toEqual(new Set(ids))
  })
})
