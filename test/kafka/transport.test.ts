import { describe, expect, test } from 'vitest'
import type { TransportSession } from '../../src/dispatch/transport.ts'
import { InvalidOptionsError, type OutboxEvent } from '../../src/index.ts'
import {
  type KafkaProducer,
  type KafkaProducerOptions,
  kafka,
  type PreparedMessage,
} from '../../src/kafka/index.ts'
import { brokerError, clock, event, FakeBroker, kinds, unreachable } from './support.ts'

const tooLarge = brokerError(10, 'MESSAGE_TOO_LARGE')
const never = new AbortController().signal

function sessionOf(
  broker: FakeBroker,
  options: Partial<KafkaProducerOptions> = {},
): TransportSession & { readonly told: unknown[] } {
  const told: unknown[] = []
  const parts = {
    subscription: 's',
    clock,
    random: () => 0.5,
    onOutage: (error: unknown) => told.push(error),
  }
  const session = kafka({ producer: broker.producer, ...options }).open(parts)
  return { send: (events, signal) => session.send(events, signal), close: () => session.close(), told }
}

const numbered = (count: number, changes: (n: number) => Partial<OutboxEvent> = () => ({})): OutboxEvent[] =>
  Array.from({ length: count }, (_, n) =>
    event({ aggregateId: `a${n}`, orderingKey: `k${n}`, payload: { n }, ...changes(n) }),
  )
const values = (broker: FakeBroker): readonly string[] => broker.written.map(({ value }) => value)

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

  test.each([
    ['no topic', { topic: { Other: 'other' } }],
    ['a topic that Kafka cannot have', { topic: () => 'a b' }],
    ['a function that throws', { topic: () => JSON.parse('{') as string }],
  ])('an event with %s is refused for good', async (_, options) => {
    const broker = new FakeBroker()
    const [outcome] = await sessionOf(broker, options).send([event()], never)
    expect(outcome).toMatchObject({ kind: 'failed', failure: { code: 'NO_TOPIC' }, retry: { kind: 'never' } })
    expect(broker.requests).toEqual([])
  })

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

  test('a producer that is not idempotent is refused', () => {
    const broker = new FakeBroker()
    const producer = () => ({ ...broker.producer(), isIdempotent: () => false })
    expect(() => sessionOf(broker, { producer })).toThrow(InvalidOptionsError)
  })
})
