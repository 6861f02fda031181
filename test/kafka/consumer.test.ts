import { describe, expect, test } from 'vitest'
import { defineEvents, type WorkerEvent } from '../../src/index.ts'
import {
  type ConsumerCrash,
  createKafkaConsumer,
  type DeadRecord,
  type KafkaConsumerClient,
  type ReceivedBatch,
} from '../../src/kafka/index.ts'
import { toMessage } from '../../src/kafka/record.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { event } from './support.ts'

const events = defineEvents({ OrderPlaced: { stream: 'shop.order', aggregate: 'order', version: 2 } })
const clock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 5), signal),
}

type EachBatch = (received: ReceivedBatch) => Promise<void>

/** A client that never fetches: tests hand batches over themselves. */
class FakeClient implements KafkaConsumerClient {
  each: EachBatch = async () => {}
  crash: (crash: ConsumerCrash) => void = () => {}
  isConnected = false
  underWay: Promise<void> | null = null

  begins: boolean | undefined

  connect = async (): Promise<void> => void (this.isConnected = true)
  subscribe = async ({ fromBeginning }: { fromBeginning?: boolean }): Promise<void> =>
    void (this.begins = fromBeginning)
  run = async ({ eachBatch }: { eachBatch: EachBatch }): Promise<void> => void (this.each = eachBatch)
  /** As real ones do, it waits for the batch that is under way. */
  disconnect = async (): Promise<void> => {
    await this.underWay
    this.isConnected = false
  }
  on = (_: string, listener: (crash: ConsumerCrash) => void): void => void (this.crash = listener)
}

interface Setup {
  readonly on: () => unknown
  readonly setAside?: (dead: DeadRecord) => Promise<void>
  readonly fromBeginning?: boolean
}

function setUp({ on, setAside = async () => {}, ...given }: Setup) {
  const clients: FakeClient[] = []
  const told: WorkerEvent[] = []
  const consumer = createKafkaConsumer({
    name: 'c',
    consumer: () => {
      const client = new FakeClient()
      clients.push(client)
      return client
    },
    topics: ['shop.order'],
    events,
    on: { OrderPlaced: on },
    deadLetters: { setAside },
    ...given,
    maxAttempts: 2,
    clock,
    observer: (each) => void told.push(each),
  })
  return { consumer, clients, told }
}

function batchOf(
  count: number,
  heartbeat: () => Promise<void> = async () => {},
): ReceivedBatch & { resolved: string[] } {
  const resolved: string[] = []
  const { headers, value, key } = toMessage(event(), 'o-1', 'payload')
  const messages = Array.from({ length: count }, (_, n) => ({ key, value, headers, offset: String(n) }))
  return {
    batch: { topic: 'shop.order', partition: 0, messages },
    resolveOffset: (offset) => void resolved.push(offset),
    heartbeat,
    isRunning: () => true,
    isStale: () => false,
    resolved,
  }
}

/**
 * The consumer of @confluentinc/kafka-javascript 1.10 as far as it differs: where to begin is a matter of its own
 * configuration, and it tells nobody of crashes because it goes on by itself. Its package has a native part that is
 * fetched or compiled when it is installed, so it is not installed for the tests.
 */
class ConfluentClient implements KafkaConsumerClient {
  isConnected = false
  connect = async (): Promise<void> => void (this.isConnected = true)
  subscribe = async (subscription: {
    topics: (string | RegExp)[]
    fromBeginning?: boolean
  }): Promise<void> => {
    if (typeof subscription.fromBeginning === 'boolean') {
      throw Object.assign(new Error("'fromBeginning' must be passed to the constructor"), { code: -186 })
    }
  }
  run = async (): Promise<void> => {}
  disconnect = async (): Promise<void> => void (this.isConnected = false)
  assignment = (): readonly unknown[] => []
  get events(): never {
    throw new Error('Not implemented')
  }
  on(): never {
    throw new Error('Not implemented')
  }
}

describe('a Kafka consumer', () => {
  test('takes the client of @confluentinc/kafka-javascript as well, which is told elsewhere where to begin', async () => {
    const client = new ConfluentClient()
    const options = {
      name: 'c',
      consumer: () => client,
      topics: ['shop.order'],
      events,
      on: { OrderPlaced: () => undefined },
      deadLetters: { setAside: async () => {} },
    }
    const consumer = createKafkaConsumer(options)
    await consumer.start()
    expect(client.isConnected).toBe(true)
    await consumer.stop()
    const told = createKafkaConsumer({ ...options, fromBeginning: true })
    await expect(told.start()).rejects.toThrow('kafka.consumer({ kafkaJS: { groupId, fromBeginning } })')
    expect(client.isConnected).toBe(false)
  })

  test.each([
    { given: {}, fromBeginning: true },
    { given: { fromBeginning: false }, fromBeginning: false },
  ])('tells the client of kafkajs where to begin: $fromBeginning', async ({ given, fromBeginning }) => {
    const { consumer, clients } = setUp({ on: () => undefined, ...given })
    await consumer.start()
    expect(clients[0]?.begins).toBe(fromBeginning)
    await consumer.stop()
  })

  test('a client that has given up is started anew, and that is told; one that restarts by itself is left alone', async () => {
    const { consumer, clients, told } = setUp({ on: () => undefined })
    await consumer.start()
    clients[0]?.crash({ payload: { error: new Error('loading'), restart: true } })
    expect(clients).toHaveLength(1)
    clients[0]?.crash({ payload: { error: new Error('gone'), restart: false } })
    await until(() => clients.length === 2 && clients[1]?.isConnected === true)
    expect(clients[0]?.isConnected).toBe(false)
    expect(told).toMatchObject([
      { kind: 'error', during: 'consume', error: { message: 'loading' } },
      { kind: 'error', during: 'consume', error: { message: 'gone' } },
    ])
    await consumer.stop()
    expect(clients.map(({ isConnected }) => isConnected)).toEqual([false, false])
  })

  test('does not pass over a message while it can be neither handled nor set aside', async () => {
    let refusals = 3
    const kept: string[] = []
    const { consumer, clients, told } = setUp({
      on: () => {
        throw new Error('never')
      },
      setAside: async ({ message }) => {
        refusals -= 1
        if (refusals >= 0) throw new Error('the topic is gone')
        kept.push(message.offset)
      },
    })
    await consumer.start()
    const received = batchOf(2)
    await clients[0]?.each(received)
    expect([kept, received.resolved]).toEqual([
      ['0', '1'],
      ['0', '1'],
    ])
    expect(told.filter(({ kind }) => kind === 'error')).toHaveLength(1)
    expect(told.filter(({ kind }) => kind === 'dead')).toHaveLength(2)
  })

  test('gives up a handler whose partition is taken away, and resolves nothing of it', async () => {
    let beats = 0
    let aborted = false
    const { consumer, clients } = setUp({ on: () => undefined })
    const waiting = createKafkaConsumer({
      name: 'c',
      consumer: () => {
        const client = new FakeClient()
        clients.push(client)
        return client
      },
      topics: ['shop.order'],
      events,
      deadLetters: { setAside: async () => {} },
      clock,
      on: {
        OrderPlaced: (_, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              aborted = true
              reject(new Error('stopped'))
            })
          }),
      },
    })
    await waiting.start()
    const received = batchOf(2, async () => {
      beats += 1
      if (beats === 3) throw new Error('the group is rebalancing')
    })
    await expect(clients[0]?.each(received)).rejects.toThrow('rebalancing')
    expect([aborted, received.resolved]).toEqual([true, []])
    await consumer.stop()
  })

  test('resolves nothing of a message whose handler had not finished when the consumer was stopped', async () => {
    const { consumer, clients } = setUp({ on: () => new Promise(() => {}) })
    await consumer.start()
    const [client] = clients
    const received = batchOf(2)
    if (client !== undefined) client.underWay = client.each(received)
    await consumer.stop({ drainMs: 1 })
    expect([client?.isConnected, received.resolved]).toEqual([false, []])
  })

  test('cannot be started twice, and a start that fails can be tried again', async () => {
    const { consumer, clients } = setUp({ on: () => undefined })
    await consumer.start()
    await expect(consumer.start()).rejects.toMatchObject({ code: 'INVALID_STATE' })
    await consumer.stop()
    await consumer.start()
    expect(clients).toHaveLength(2)
    await consumer.stop()
  })
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}
