import { describe, expect, test } from 'vitest'
import { InvalidOptionsError, type OutboxEvent } from '../../src/index.ts'
import {
  type AnsweredRequest,
  type KafkaProducer,
  kafka,
  type PreparedMessage,
} from '../../src/kafka/index.ts'
import {
  brokerError,
  clock,
  FakeBroker,
  kinds,
  never,
  numbered,
  sessionOf,
  unreachable,
  values,
} from './support.ts'

const tooLarge = brokerError(10, 'MESSAGE_TOO_LARGE')

describe('the transport to Kafka', () => {
  test('sends a batch as one request, by topic', async () => {
    const broker = new FakeBroker()
    const session = sessionOf(broker)
    expect(kinds(await session.send(numbered(100), never))).toEqual(Array(100).fill('handled'))
    expect(broker.requests).toEqual([100])
  })

  test('finds the one record that is refused among many, and sends the others', async () => {
    const broker = new FakeBroker()
    broker.answer = (batch) => {
      if (batch.some(({ messages }) => messages.some(({ value }) => value === '{"n":37}'))) throw tooLarge
    }
    const outcomes = await sessionOf(broker).send(numbered(100), never)
    expect(outcomes.findIndex(({ kind }) => kind === 'failed')).toBe(37)
    expect(outcomes[37]).toMatchObject({ failure: { code: 'MESSAGE_TOO_LARGE' }, retry: { kind: 'never' } })
    expect(outcomes.filter(({ kind }) => kind === 'handled')).toHaveLength(99)
    expect(new Set(values(broker)).size).toBe(99)
  })

  test('uses no producer again that failed: it may have lost count', async () => {
    const broker = new FakeBroker()
    const session = sessionOf(broker)
    await session.send(numbered(1), never)
    expect(broker.made).toBe(1)
    broker.answer = () => {
      broker.answer = () => {}
      throw tooLarge
    }
    await session.send(numbered(2), never)
    expect(broker.made).toBe(2)
    await session.close()
    expect(broker.open).toBe(0)
  })

  test('sends nothing of a key behind an event of it that was not sent', async () => {
    const broker = new FakeBroker()
    broker.answer = (batch) => {
      if (batch.some(({ messages }) => messages.some(({ value }) => value === '{"n":2}'))) throw tooLarge
    }
    const outcomes = await sessionOf(broker).send(
      numbered(6, (n) => ({ orderingKey: n % 2 === 0 ? 'even' : 'odd' })),
      never,
    )
    expect(kinds(outcomes)).toEqual(['handled', 'handled', 'failed', 'handled', 'interrupted', 'handled'])
    expect(values(broker)).not.toContain('{"n":4}')
  })

  test('asks twice for a topic that nobody knows, and then for none of its other records', async () => {
    const broker = new FakeBroker()
    broker.answer = (batch) => {
      if (batch.some(({ topic }) => topic === 'gone')) throw brokerError(3, 'UNKNOWN_TOPIC_OR_PARTITION')
    }
    const topic = ({ payload }: OutboxEvent): string =>
      (payload as { n: number }).n % 2 === 0 ? 'gone' : 'there'
    const outcomes = await sessionOf(broker, { topic }).send(numbered(10), never)
    expect(kinds(outcomes)).toEqual(
      Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? 'failed' : 'handled')),
    )
    expect(broker.requests).toEqual([10, 5, 5, 5])
  })

  test('a topic that was only not known yet costs nobody anything', async () => {
    const broker = new FakeBroker()
    let asked = 0
    broker.answer = () => {
      asked += 1
      if (asked === 1) throw brokerError(3, 'UNKNOWN_TOPIC_OR_PARTITION')
    }
    expect(kinds(await sessionOf(broker).send(numbered(3), never))).toEqual(['handled', 'handled', 'handled'])
  })

  test('waits while Kafka is down, tells of it once, and goes on by itself', async () => {
    const broker = new FakeBroker()
    let tries = 0
    broker.connecting = () => {
      tries += 1
      if (tries <= 5) throw unreachable()
    }
    const session = sessionOf(broker)
    expect(kinds(await session.send(numbered(3), never))).toEqual(['handled', 'handled', 'handled'])
    expect([tries, broker.made]).toEqual([6, 6])
    expect(session.told).toEqual([expect.objectContaining({ code: 'BROKER_UNAVAILABLE' })])
  })

  test('gives up waiting when it is told to, and nothing is spent', async () => {
    const broker = new FakeBroker()
    broker.connecting = () => {
      throw unreachable()
    }
    const giveUp = new AbortController()
    const sending = sessionOf(broker).send(numbered(2), giveUp.signal)
    giveUp.abort()
    expect(kinds(await sending)).toEqual(['interrupted', 'interrupted'])
  })

  test('a request that is not answered in time is sent again by a new producer', async () => {
    const broker = new FakeBroker()
    broker.answer = () => {
      broker.answer = () => {}
      return new Promise(() => {})
    }
    const session = sessionOf(broker, { timeoutMs: 1_050 })
    expect(kinds(await session.send(numbered(2), never))).toEqual(['handled', 'handled'])
    expect(broker.made).toBe(2)
    expect(values(broker)).toEqual(['{"n":0}', '{"n":1}'])
  })

  test('a producer that connects too late sends nothing: another one has done so', async () => {
    const broker = new FakeBroker()
    let connectLate = (): void => {}
    broker.connecting = () => {
      broker.connecting = () => {}
      return new Promise((resolve) => {
        connectLate = resolve
      })
    }
    const session = sessionOf(broker, { timeoutMs: 1_050 })
    expect(kinds(await session.send(numbered(1), never))).toEqual(['handled'])
    connectLate()
    await new Promise((resolve) => setImmediate(resolve))
    expect([broker.made, values(broker)]).toEqual([2, ['{"n":0}']])
  })

  test('cuts requests by their bytes', async () => {
    const broker = new FakeBroker()
    await sessionOf(broker, { maxRequestBytes: 3_000 }).send(
      numbered(4, () => ({ payload: 'x'.repeat(1_000) })),
      never,
    )
    expect(broker.requests).toEqual([2, 2])
  })

  test('what a producer says is written is not sent again with what was refused, unless it is behind that in its key', async () => {
    const requests: (readonly string[])[] = []
    const producer = (): KafkaProducer => ({
      connect: async () => {},
      disconnect: async () => {},
      sendBatch: () => Promise.reject(new Error('it is not asked')),
      prepare: ({ value }) => ({ size: 1, value }) as PreparedMessage,
      sendPrepared: async (topics, onWritten) => {
        const messages = [...topics.values()].flat() as (PreparedMessage & { readonly value: string })[]
        requests.push(messages.map(({ value }) => value))
        if (requests.length > 2) return
        onWritten(messages.filter(({ value }) => value !== '{"n":1}' && value !== '{"n":2}'))
        throw brokerError(19, 'NOT_ENOUGH_REPLICAS')
      },
    })
    const parts = { subscription: 's', clock, random: () => 0.5, onOutage: () => {} }
    const session = kafka({ producer }).open(parts)
    const events = numbered(5, (n) => ({ orderingKey: n === 3 ? 'k1' : `k${n}` }))
    expect(kinds(await session.send(events, never))).toEqual(Array(5).fill('handled'))
    const left = ['{"n":1}', '{"n":2}', '{"n":3}']
    expect(requests.map((sent) => sent.length)).toEqual([5, 3, 3])
    expect(requests[2]).toEqual(left)
  })

  test('what a producer says is written is handled, also where it gives up on the rest', async () => {
    const giveUp = new AbortController()
    const producer = (): KafkaProducer => ({
      connect: async () => {},
      disconnect: async () => {},
      sendBatch: () => Promise.reject(new Error('it is not asked')),
      prepare: () => ({ size: 1 }),
      sendPrepared: async (topics, onWritten) => {
        onWritten([...topics.values()].flat().slice(0, 2))
        giveUp.abort()
        throw brokerError(19, 'NOT_ENOUGH_REPLICAS')
      },
    })
    const parts = { subscription: 's', clock, random: () => 0.5, onOutage: () => {} }
    const outcomes = await kafka({ producer }).open(parts).send(numbered(3), giveUp.signal)
    expect(kinds(outcomes)).toEqual(['handled', 'handled', 'interrupted'])
  })

  test.each([
    ['after it was answered', ['Produce', 'Produce', 'Metadata']],
    ['before anything was answered', ['Metadata', 'Produce']],
    ['and is not answered at all', ['Metadata']],
  ])(
    'kafkajs that asks anew who leads while it sends, %s, is not believed, and a new producer sends again',
    async (_, told) => {
      const broker = new FakeBroker()
      const answered = [told, ['Produce']]
      const producer = (): KafkaProducer => {
        const made = broker.producer()
        let tell: (request: AnsweredRequest) => void = () => {}
        return {
          ...made,
          on: (_event, listener) => {
            tell = listener
          },
          sendBatch: async (batch) => {
            const isOfNothing = batch.topicMessages.every(({ messages }) => messages.length === 0)
            const names = isOfNothing ? ['Metadata'] : (answered.shift() ?? [])
            for (const apiName of names) tell({ payload: { apiName } })
            await made.sendBatch(batch)
          },
        }
      }
      const parts = { subscription: 's', clock, random: () => 0.5, onOutage: () => {} }
      const session = kafka({ producer }).open(parts)
      expect(kinds(await session.send(numbered(2), never))).toEqual(['handled', 'handled'])
      expect([broker.made, broker.requests]).toEqual([2, [0, 2, 0, 2]])
    },
  )

  test('a producer that can prepare does so once for each record, before its turn or in it', async () => {
    const prepared: string[] = []
    const sent: (readonly [string, readonly string[]])[] = []
    const producer = (): KafkaProducer => ({
      connect: async () => {},
      disconnect: async () => {},
      sendBatch: () => Promise.reject(new Error('it is not asked')),
      prepare: ({ value }) => {
        prepared.push(String(value))
        return { size: 1, value } as PreparedMessage
      },
      sendPrepared: async (topics) => {
        for (const [topic, messages] of topics) {
          sent.push([topic, messages.map((each) => (each as unknown as { value: string }).value)])
        }
      },
    })
    const parts = { subscription: 's', clock, random: () => 0.5, onOutage: () => {} }
    const session = kafka({ producer }).open(parts)
    const events = numbered(3)
    for (const each of events.slice(1)) session.prepare?.(each)
    expect(prepared).toEqual(['{"n":1}', '{"n":2}'])
    expect(kinds(await session.send(events, never))).toEqual(['handled', 'handled', 'handled'])
    expect(prepared).toEqual(['{"n":1}', '{"n":2}', '{"n":0}'])
    expect(sent).toEqual([['shop.order', ['{"n":0}', '{"n":1}', '{"n":2}']]])
  })

  test('a producer that says nothing of itself, as Confluent’s, is taken as it is, and used no more once it failed', async () => {
    const broker = new FakeBroker()
    const producer = (): KafkaProducer => {
      const made = broker.producer()
      return {
        connect: () => made.connect(),
        sendBatch: (batch) => made.sendBatch(batch),
        disconnect: () => made.disconnect(),
      }
    }
    broker.answer = () => {
      broker.answer = () => {}
      throw brokerError(19, 'NOT_ENOUGH_REPLICAS')
    }
    const session = sessionOf(broker, { producer })
    expect(kinds(await session.send(numbered(2), never))).toEqual(['handled', 'handled'])
    // Nothing goes first, as it does where the producer tells of its requests.
    expect([broker.made, broker.requests]).toEqual([2, [2, 2]])
  })

  test('a producer that is not idempotent is refused', () => {
    const broker = new FakeBroker()
    const producer = () => ({ ...broker.producer(), isIdempotent: () => false })
    expect(() => sessionOf(broker, { producer })).toThrow(InvalidOptionsError)
  })
})
