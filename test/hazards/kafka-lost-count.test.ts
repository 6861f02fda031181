import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kafka } from '../../src/kafka/index.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { TestKafka } from '../acceptance/kafka-support.ts'
import { event } from '../kafka/support.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient } from '../support/patience.ts'

bePatient()

// An idempotent producer numbers what it sends. When one partition of a request is refused, kafkajs takes the numbers of
// all of it back, also of what was written: the next messages get numbers that the broker knows, and it drops them.
describe.skipIf(!kafkaAvailable())('a producer that lost count', () => {
  let broker: TestKafka

  beforeAll(async () => {
    broker = await TestKafka.start()
    await broker.createTopics(['good-naive', 'good'], {}, 1)
    await broker.createTopics(['tiny'], { 'max.message.bytes': '2000' }, 1)
  })
  afterAll(async () => {
    await broker[Symbol.asyncDispose]()
  })

  test('naive: used on, its next message is confirmed and was never written', async () => {
    const producer = broker.producer()
    await producer.connect()
    const partly = producer.sendBatch({
      topicMessages: [
        { topic: 'good-naive', messages: [{ key: 'k', value: 'one' }] },
        { topic: 'tiny', messages: [{ key: 'k', value: 'x'.repeat(5_000) }] },
      ],
    })
    await expect(partly).rejects.toThrow()
    await producer.send({ topic: 'good-naive', messages: [{ key: 'k', value: 'two' }] })
    await producer.disconnect()
    expect((await broker.read('good-naive')).map(({ value }) => value)).not.toContain('two')
  })

  test('real: what the transport confirms is there', async () => {
    const parts = { subscription: 's', clock: systemClock, random: () => 0.5, onOutage: () => {} }
    const session = kafka({ producer: broker.producer, topic: '{stream}' }).open(parts)
    const never = new AbortController().signal
    const large = event({ stream: 'tiny', orderingKey: 'other', payload: 'x'.repeat(5_000) })
    const first = await session.send([event({ stream: 'good', payload: 'one' }), large], never)
    const second = await session.send([event({ stream: 'good', payload: 'two' })], never)
    await session.close()
    expect([...first, ...second].map(({ kind }) => kind)).toEqual(['handled', 'failed', 'handled'])
    const values = new Set((await broker.read('good')).map(({ value }) => value))
    expect(values).toEqual(new Set(['"one"', '"two"']))
  })
})
