import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineEvents, relay } from '../../src/index.ts'
import { kafka, sequenceChecker } from '../../src/kafka/index.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient } from '../support/patience.ts'
import { STREAMS } from './everbit-system.ts'
import { ingest, openIvm, payloadOf, product, slice } from './ivm-system.ts'
import { RELAY_PRODUCERS, type SeenMessage, TestKafka } from './kafka-support.ts'
import { openLedger } from './ledger-system.ts'
import { openSystem } from './support.ts'

bePatient()

const trade = defineEvents({
  OrderFilled: { stream: 'everbit.trade.event', aggregate: 'order', schema: z.object({ price: z.number() }) },
  OrderRequested: { stream: 'everbit.trade.command', aggregate: 'order' },
})

describe.skipIf(!kafkaAvailable()).each(RELAY_PRODUCERS)('a relay to a real Kafka, by its %s', (made) => {
  let broker: TestKafka

  beforeAll(async () => {
    broker = await TestKafka.start()
  })
  afterAll(async () => {
    await broker[Symbol.asyncDispose]()
  })

  test('E4 E16 streams are topics unchanged: what commits in a transaction arrives there, what rolls back does not', async () => {
    await broker.createTopics(STREAMS)
    await using system = await openSystem(trade)
    await system.run([relay('to-kafka', { via: kafka({ producer: broker[made] }) })])
    const filled = await system.publish('OrderFilled', {
      aggregateId: 'o-1',
      payload: { price: 10 },
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      headers: { market: 'KRW-BTC' },
    })
    const undone = system.outbox.inTransaction(system.pool, async (tx) => {
      await system.outbox.publish(tx, 'OrderFilled', { aggregateId: 'o-2', payload: { price: 11 } })
      throw new Error('the order was not filled after all')
    })
    await expect(undone).rejects.toThrow('not filled')
    await system.publish('OrderRequested', { aggregateId: 'o-3', payload: {} })
    await system.untilSettled()
    const seen = await broker.read('everbit.trade.event', 'everbit.trade.command')
    expect(new Set(seen.map(({ topic, key }) => `${topic} ${key}`))).toEqual(
      new Set(['everbit.trade.command o-3', 'everbit.trade.event o-1']),
    )
    const [message] = seen.filter(({ key }) => key === 'o-1')
    expect(JSON.parse(message?.value ?? '')).toEqual({ price: 10 })
    expect(message?.headers).toMatchObject({
      eventId: filled,
      eventType: 'OrderFilled',
      schemaVersion: '1',
      stream: 'everbit.trade.event',
      aggregateType: 'order',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      market: 'KRW-BTC',
    })
  })

  test('I4 I5 topic by aggregate type, key the aggregate id, the value an envelope with the names of the RFC', async () => {
    const topics = ['ivm.events.raw_data', 'ivm.events.slice', 'ivm.events.changeset']
    await broker.createTopics(topics)
    await using ivm = await openIvm()
    const via = kafka({
      producer: broker[made],
      topic: 'ivm.events.{aggregateType}',
      format: {
        envelope: {
          type: 'eventType',
          occurredAt: 'timestamp',
          aggregateId: true,
          traceId: false,
          schemaVersion: false,
        },
      },
    })
    await ivm.run([relay('v2', { via, order: 'aggregate' })])
    const aggregateId = 'tenant-1:product-123'
    const written = [
      { eventType: 'RawDataIngested', payload: payloadOf(product), eventId: await ingest(ivm, product) },
      {
        eventType: 'SliceCreated',
        payload: slice,
        eventId: await ivm.publish('SliceCreated', { aggregateId, payload: slice }),
      },
      {
        eventType: 'ChangesetCreated',
        payload: {},
        eventId: await ivm.publish('ChangesetCreated', { aggregateId, payload: {} }),
      },
    ]
    await ivm.untilSettled()
    for (const [index, { eventId, eventType, payload }] of written.entries()) {
      const [message] = await broker.read(topics[index] ?? '')
      expect(message).toMatchObject({ key: aggregateId, headers: { eventType, eventId } })
      const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)
      expect(JSON.parse(message?.value ?? '')).toEqual({
        eventId,
        eventType,
        timestamp,
        aggregateId,
        payload,
      })
    }
  })

  test('L9 L10 one topic per event type, the key follows the account, and a consumer verifies the sequence', async () => {
    const topics = ['ledger-posted-events', 'ledger-reversed-events']
    await broker.createTopics([...topics, 'ledger-events'])
    await using ledger = await openLedger()
    const perType = kafka({
      producer: broker[made],
      topic: { LEDGER_POSTED: 'ledger-posted-events', LEDGER_REVERSED: 'ledger-reversed-events' },
    })
    const one = kafka({ producer: broker[made], topic: 'ledger-events' })
    await ledger.run([
      relay('per-type', { via: perType, order: 'aggregate' }),
      relay('all', { via: one, order: 'aggregate' }),
    ])
    const posting = (n: number) => ({
      transactionId: `t-${n}`,
      accountId: 'acc-1',
      amount: 1,
      balanceAfter: n,
    })
    for (let n = 1; n <= 20; n += 1) {
      await ledger.publish('LedgerPosted', { aggregateId: `t-${n}`, payload: posting(n) })
    }
    const payload = { ...posting(21), reversedTransactionId: 't-1' }
    await ledger.publish('LedgerReversed', { aggregateId: 't-21', payload })
    await ledger.untilSettled()
    const split = await broker.read(...topics)
    expect(split.filter(({ topic }) => topic === 'ledger-reversed-events').map(({ key }) => key)).toEqual([
      'acc-1',
    ])
    const all = await broker.read('ledger-events')
    expect(new Set(all.map(({ key }) => key))).toEqual(new Set(['acc-1']))
    expect(new Set(all.map(({ partition }) => partition)).size).toBe(1)
    const checker = sequenceChecker({ fromBeginning: true })
    for (const message of all) checker.check(numbered(message))
    expect(checker.counts).toMatchObject({ next: 21, gap: 0, repeat: 0 })
  })

  test('I6 order per key holds over 10,000 events of 50 keys from four publishers', async () => {
    await broker.createTopics(['many'])
    const many = defineEvents({
      ThingHappened: {
        stream: 'many',
        aggregate: 'thing',
        sequence: true,
        schema: z.object({ n: z.number() }),
      },
    })
    await using system = await openSystem(many)
    await system.run([relay('to-kafka', { via: kafka({ producer: broker[made] }), order: 'aggregate' })])
    const publisher = async (who: number): Promise<void> => {
      for (let batch = 0; batch < 25; batch += 1) {
        await system.outbox.inTransaction(system.pool, async (tx) => {
          const inputs = Array.from({ length: 100 }, (_, n) => ({
            type: 'ThingHappened' as const,
            aggregateId: `k-${(who * 7 + n) % 50}`,
            payload: { n: batch * 100 + n },
          }))
          await system.outbox.publishAll(tx, inputs)
        })
      }
    }
    await Promise.all([0, 1, 2, 3].map(publisher))
    await system.untilSettled()
    const seen = await broker.read('many')
    const checker = sequenceChecker({ fromBeginning: true })
    for (const message of seen) checker.check(numbered(message))
    expect(checker.counts).toMatchObject({ next: 10_000, gap: 0, repeat: 0 })
  })

  test('I5 CloudEvents 1.0, binary and structured', async () => {
    await broker.createTopics(['ce-binary', 'ce-structured'])
    await using system = await openSystem(trade)
    const options = { producer: broker[made], source: '/everbit' }
    const via = (cloudEvents: 'binary' | 'structured') =>
      kafka({
        producer: options.producer,
        topic: `ce-${cloudEvents}`,
        format: { cloudEvents, source: options.source },
      })
    await system.run([
      relay('binary', { via: via('binary') }),
      relay('structured', { via: via('structured') }),
    ])
    const id = await system.publish('OrderFilled', { aggregateId: 'o-1', payload: { price: 10 } })
    await system.untilSettled()
    const [binary] = await broker.read('ce-binary')
    expect(binary?.headers).toMatchObject({
      ce_specversion: '1.0',
      ce_id: id,
      ce_type: 'OrderFilled',
      ce_source: '/everbit',
      ce_subject: 'o-1',
      ce_partitionkey: 'o-1',
      'content-type': 'application/json',
    })
    expect(JSON.parse(binary?.value ?? '')).toEqual({ price: 10 })
    const [structured] = await broker.read('ce-structured')
    expect(structured?.headers['content-type']).toBe('application/cloudevents+json; charset=UTF-8')
    expect(JSON.parse(structured?.value ?? '')).toMatchObject({
      specversion: '1.0',
      id,
      type: 'OrderFilled',
      source: '/everbit',
      data: { price: 10 },
    })
  })
})

function numbered({ headers, key }: SeenMessage): { eventId: string; orderingKey: string; sequence: number } {
  return { eventId: headers['eventId'] ?? '', orderingKey: key ?? '', sequence: Number(headers['sequence']) }
}
