import { describe, expect, test } from 'vitest'
import { createKafkaConsumer, type KafkaConsumerClient } from '../../src/kafka/index.ts'
import { batchOf, clock, events, FakeClient, setUp } from './consumer-support.ts'

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
  run = async (options: object): Promise<void> => {
    if (Object.hasOwn(options, 'autoCommitInterval')) {
      throw new Error("'autoCommitInterval' must be passed to the constructor")
    }
  }
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
    const client = new FakeClient()
    const waiting = createKafkaConsumer({
      name: 'c',
      consumer: () => client,
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
    await expect(client.each(received)).rejects.toThrow('rebalancing')
    expect([aborted, received.resolved]).toEqual([true, []])
    await waiting.stop()
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

  test('one that is stopped while it joins the group does not stay there', async () => {
    let join = (): void => undefined
    const client = new FakeClient()
    client.joining = new Promise((resolve) => {
      join = resolve
    })
    const { consumer } = setUp({ on: () => undefined, client: () => client })
    const starting = consumer.start()
    await until(() => client.isConnected)
    const stopping = consumer.stop()
    await new Promise((resolve) => setImmediate(resolve))
    join()
    await Promise.all([starting, stopping])
    expect(client.isConnected).toBe(false)
  })

  test('what was handled is committed while a long batch lasts, after each message if it is time', async () => {
    const { consumer, clients } = setUp({ on: () => undefined })
    await consumer.start()
    const batch = batchOf(3)
    const resolvedByThen: number[] = []
    await clients[0]?.each({
      ...batch,
      commitOffsetsIfNecessary: async () => void resolvedByThen.push(batch.resolved.length),
    })
    expect(resolvedByThen).toEqual([1, 2, 3])
    expect(clients[0]?.commitsEveryMs).toBe(1_000)
    await consumer.stop()
  })
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}
