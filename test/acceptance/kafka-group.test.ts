import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineEvents, fixed } from '../../src/index.ts'
import {
  createKafkaConsumer,
  createKafkaEventBus,
  deadLetterTopic,
  type KafkaConsumer,
} from '../../src/kafka/index.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient, comes } from '../support/patience.ts'
import { TestKafka } from './kafka-support.ts'

bePatient()

const stepsOf = (stream: string) =>
  defineEvents({ StepTaken: { stream, aggregate: 'walk', schema: z.object({ n: z.number() }) } })

/** A step that a handler came to the end of. */
interface Step {
  readonly by: string
  readonly key: string
  readonly n: number
}

describe.skipIf(!kafkaAvailable())('consumers of one group', () => {
  let broker: TestKafka

  beforeAll(async () => {
    broker = await TestKafka.start()
  })
  afterAll(async () => {
    await broker[Symbol.asyncDispose]()
  })

  /** So many steps of so many walks, in order. */
  async function walk(topic: string, walks: number, from: number, to: number): Promise<void> {
    await using bus = createKafkaEventBus({ events: stepsOf(topic), producer: broker.producer })
    const inputs = Array.from({ length: walks * (to - from) }, (_, index) => ({
      type: 'StepTaken' as const,
      aggregateId: `walk-${index % walks}`,
      payload: { n: from + Math.floor(index / walks) },
    }))
    await bus.publishAll(null, inputs)
  }

  function follow(
    topic: string,
    by: string,
    taken: Step[],
    before: (step: Step, signal: AbortSignal) => Promise<void>,
  ): KafkaConsumer {
    return createKafkaConsumer({
      name: by,
      consumer: () =>
        broker.client.consumer({
          groupId: topic,
          maxWaitTimeInMs: 50,
          heartbeatInterval: 500,
          retry: { retries: 20 },
        }),
      topics: [topic],
      events: stepsOf(topic),
      deadLetters: deadLetterTopic({ producer: broker.producer }),
      retry: fixed(10),
      on: {
        StepTaken: async ({ aggregateId, payload: { n } }, ctx) => {
          const step = { by, key: aggregateId, n }
          await before(step, ctx.signal)
          taken.push(step)
        },
      },
    })
  }

  test('I6 E9 one that joins in mid-batch: what is in hand is interrupted and comes again, each key in order, and nothing is passed over', async () => {
    await broker.createTopics(['shared', 'shared.dead'])
    await walk('shared', 40, 0, 10)
    const taken: Step[] = []
    let open = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    let waiting = 0
    let interrupted = 0
    const first = follow('shared', 'first', taken, async ({ n }, signal) => {
      if (n < 2) return
      waiting += 1
      const stopped = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => {
          interrupted += 1
          reject(new Error('the partition is another’s'))
        })
      })
      await Promise.race([gate, stopped])
    })
    await first.start()
    await comes('some are handled, and the first waits with others in hand', () => waiting > 0)
    await using second = follow('shared', 'second', taken, async () => {})
    await second.start()
    await comes('what was in hand is interrupted', () => interrupted > 0)
    await comes('the second has its part', () => taken.some(({ by }) => by === 'second'))
    open()
    await comes('all is handled', () => firstOccurrences(taken).length === 400)
    expect(orderOf(taken)).toEqual(inOrder(40, 10))
    expect(new Set(taken.map(({ by }) => by))).toEqual(new Set(['first', 'second']))
    await first.stop()
    await second.stop()
    await comes('all is committed', async () => sum(await broker.committed('shared', 'shared')) === 400)
    expect(await broker.read('shared.dead')).toEqual([])
  })

  test('E9 a broker that is killed while a batch is in hand: the consumer goes on by itself when it is back, in order', async () => {
    await broker.createTopics(['restarted', 'restarted.dead'], {}, 1)
    await walk('restarted', 1, 0, 20)
    const taken: Step[] = []
    let isInHand = false
    let open = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    await using consumer = follow('restarted', 'only', taken, async ({ n }) => {
      if (n !== 5) return
      isInHand = true
      await gate
    })
    await consumer.start()
    await comes('the sixth is in hand', () => isInHand)
    await broker.server.kill()
    open()
    await broker.server.restart()
    await comes('all of the batch', () => firstOccurrences(taken).length === 20)
    await walk('restarted', 1, 20, 25)
    await comes('what came later', () => firstOccurrences(taken).length === 25)
    expect(orderOf(taken)).toEqual(inOrder(1, 25))
    await consumer.stop()
    await comes('all is committed', async () => sum(await broker.committed('restarted', 'restarted')) === 25)
  })

  test('D4 in a topic that others write to as well, what is no event is set aside byte for byte, and events are handled', async () => {
    await broker.createTopics(['mixed', 'mixed.dead'], {}, 1)
    const binary = Buffer.from([0, 0, 0, 0, 7, 0xc3, 0x28, 0xff])
    const producer = broker.producer()
    await producer.connect()
    await producer.send({
      topic: 'mixed',
      messages: [
        { key: 'gone', value: null },
        { key: null, value: binary, headers: { schema: binary } },
        { key: 'other', value: '{"from": "another system"}' },
      ],
    })
    await producer.disconnect()
    await walk('mixed', 1, 0, 1)
    const taken: Step[] = []
    await using consumer = follow('mixed', 'only', taken, async () => {})
    await consumer.start()
    await comes('the event is handled', () => taken.length >= 1)
    await consumer.stop()
    const dead = await broker.read('mixed.dead')
    expect(dead.map(({ key, bytes }) => [key, bytes])).toEqual([
      [null, binary],
      ['other', Buffer.from('{"from": "another system"}')],
    ])
    expect(dead.map(({ headers }) => headers['dead_letter_code'])).toEqual([
      'RECORD_UNREADABLE',
      'RECORD_UNREADABLE',
    ])
    expect(await broker.committed('mixed', 'mixed')).toEqual([4])
  })
})

/** Each step when it was first taken. */
function firstOccurrences(taken: readonly Step[]): readonly Step[] {
  const seen = new Set<string>()
  return taken.filter(({ key, n }) => {
    const isFirst = !seen.has(`${key} ${n}`)
    seen.add(`${key} ${n}`)
    return isFirst
  })
}

/** Of each walk, the numbers of its steps as they were first taken. */
function orderOf(taken: readonly Step[]): ReadonlyMap<string, readonly number[]> {
  const walks = new Map<string, number[]>()
  for (const { key, n } of firstOccurrences(taken)) walks.set(key, [...(walks.get(key) ?? []), n])
  return walks
}

function inOrder(walks: number, steps: number): ReadonlyMap<string, readonly number[]> {
  const numbers = Array.from({ length: steps }, (_, n) => n)
  return new Map(Array.from({ length: walks }, (_, walk) => [`walk-${walk}`, numbers]))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
