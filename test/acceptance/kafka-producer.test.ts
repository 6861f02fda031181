import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Partitioners } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type KafkaMessage,
  type KafkaProducer,
  type RelayProducerOptions,
  relayProducer,
} from '../../src/kafka/index.ts'
import { type Certificate, makeCertificate } from '../support/kafka/certificate.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient } from '../support/patience.ts'
import { TestKafka } from './kafka-support.ts'

bePatient()

/** Around the places where lengths take another byte, where short texts end, and where memory is asked for anew. */
const LENGTHS = [0, 1, 3, 47, 48, 49, 63, 64, 65, 8_191, 8_192, 300_000]

const TEXTS = [
  ...LENGTHS.map((length) => 'x'.repeat(length)),
  'é',
  '주문',
  '🚚 truck',
  'ASCII, then ÿ',
  '\u0000',
]

const MESSAGES: readonly KafkaMessage[] = [
  ...TEXTS.map((value, index) => ({
    key: `key-${index}`,
    value,
    headers: { same: 'again', index: `${index}` },
  })),
  ...TEXTS.slice(0, -6).map((key) => ({ key, value: 'v', headers: { [`name ${key.slice(0, 100)}`]: key } })),
  {
    key: '서울',
    value: Buffer.from([0, 255, 254, 128]),
    headers: { 이름: '값', bytes: Buffer.from([255, 0]) },
  },
  { key: Buffer.from([200, 1, 2]), value: '', headers: { many: ['a', Buffer.from('b'), 'é'], none: [] } },
  { key: 'bare', value: '{}', headers: {} },
]

const USER = { name: 'shop', password: 'open-sesame' }

describe.skipIf(!kafkaAvailable())("the relay's own producer and a real Kafka", () => {
  let broker: TestKafka

  let directory: string
  let certificate: Certificate

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'commitpost-certificate-'))
    certificate = await makeCertificate(directory)
    broker = await TestKafka.start({ user: USER, certificate })
  })
  afterAll(async () => {
    await broker[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  async function send(producer: KafkaProducer, topic: string): Promise<void> {
    await producer.connect()
    // One by one too: what is alone in a batch, and numbers that go on.
    await producer.sendBatch({ topicMessages: [{ topic, messages: [...MESSAGES] }] })
    for (const message of MESSAGES)
      await producer.sendBatch({ topicMessages: [{ topic, messages: [message] }] })
    await producer.disconnect()
  }

  async function contentOf(topic: string): Promise<readonly unknown[]> {
    const seen = await broker.read(topic)
    return seen
      .map((each) => ({ ...each, topic: '' }))
      .toSorted((one, other) => one.partition - other.partition || Number(one.offset) - Number(other.offset))
  }

  test('every message stands in the topic as one of kafkajs does: partition, place, key, value and headers', async () => {
    await broker.createTopics(['by-kafkajs', 'by-ours'])
    await send(broker.producer(), 'by-kafkajs')
    await send(broker.relayProducer(), 'by-ours')
    const ours = await contentOf('by-ours')
    expect(ours).toHaveLength(MESSAGES.length * 2)
    expect(ours).toEqual(await contentOf('by-kafkajs'))
  })

  test('messages without a key go to all partitions in turn', async () => {
    await broker.createTopics(['keyless'])
    const producer = broker.relayProducer()
    await producer.connect()
    const messages = Array.from({ length: 40 }, (_, n) => ({ key: null, value: `${n}`, headers: {} }))
    await producer.sendBatch({ topicMessages: [{ topic: 'keyless', messages }] })
    await producer.disconnect()
    const seen = await broker.read('keyless')
    const counts = [0, 1, 2, 3].map((partition) => seen.filter((each) => each.partition === partition).length)
    expect(counts).toEqual([10, 10, 10, 10])
    expect(seen.every(({ key }) => key === null)).toBe(true)
  })

  test('what is sent at the same time is written one after the other, and nothing behind a failure', async () => {
    await broker.createTopics(['turns'], { 'max.message.bytes': '20000' }, 1)
    const producer = broker.relayProducer()
    await producer.connect()
    const sendOne = (value: string): Promise<unknown> =>
      producer.sendBatch({
        topicMessages: [{ topic: 'turns', messages: [{ key: 'k', value, headers: {} }] }],
      })
    const results = await Promise.allSettled([
      sendOne('a'),
      sendOne('b'),
      sendOne('x'.repeat(30_000)),
      sendOne('c'),
    ])
    await producer.disconnect()
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected'])
    expect(results[2]).toMatchObject({ reason: { code: 10, type: 'MESSAGE_TOO_LARGE' } })
    expect(results[3]).toMatchObject({ reason: { name: 'WireConnectionError' } })
    expect((await broker.read('turns')).map(({ value }) => value)).toEqual(['a', 'b'])
  })

  test.each(['plain', 'scram-sha-256', 'scram-sha-512'] as const)(
    'says who it is by %s, and is believed only with the password',
    async (mechanism) => {
      const topic = `sasl-${mechanism}`
      await broker.createTopics([topic])
      const by = (password: string): KafkaProducer =>
        relayProducer({
          brokers: [broker.server.saslBootstrap],
          sasl: { mechanism, username: USER.name, password },
        })
      await expect(by('wrong').connect()).rejects.toMatchObject({ code: 58 })
      const producer = by(USER.password)
      await producer.connect()
      await producer.sendBatch({
        topicMessages: [{ topic, messages: [{ key: 'k', value: mechanism, headers: {} }] }],
      })
      await producer.disconnect()
      expect((await broker.read(topic)).map(({ value }) => value)).toEqual([mechanism])
    },
  )

  test('speaks TLS, and only with a broker whose certificate it can believe', async () => {
    await broker.createTopics(['tls'])
    const by = (ssl: RelayProducerOptions['ssl']): KafkaProducer =>
      relayProducer({ brokers: [broker.server.tlsBootstrap], ...(ssl !== undefined && { ssl }) })
    await expect(by(true).connect()).rejects.toThrow(/cannot be reached: self-signed certificate/)
    const producer = by({ ca: certificate.pem })
    await producer.connect()
    await producer.sendBatch({
      topicMessages: [{ topic: 'tls', messages: [{ key: 'k', value: 'secret', headers: {} }] }],
    })
    await producer.disconnect()
    expect((await broker.read('tls')).map(({ value }) => value)).toEqual(['secret'])
  })

  test('I7 a broker that takes connections and answers nothing keeps nobody from the next one', async () => {
    const suspended = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(suspended, 'listening')
    const { port } = suspended.address() as AddressInfo
    await broker.createTopics(['passed-over'])
    const producer = relayProducer({
      brokers: [`127.0.0.1:${port}`, broker.server.bootstrap],
      connectionTimeout: 5_000,
    })
    await producer.connect()
    await producer.sendBatch({
      topicMessages: [{ topic: 'passed-over', messages: [{ key: 'k', value: 'v', headers: {} }] }],
    })
    await producer.disconnect()
    suspended.close()
    expect(await broker.read('passed-over')).toHaveLength(1)
  })

  test('says that nobody answers, where something else does or nothing at all', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const connecting = relayProducer({
      brokers: [`127.0.0.1:${port}`],
      ssl: true,
      connectionTimeout: 200,
    }).connect()
    await expect(connecting).rejects.toThrow(/no answer within 200 ms/)
    silent.close()
    await expect(relayProducer({ brokers: [`127.0.0.1:${port}`] }).connect()).rejects.toThrow(/ECONNREFUSED/)
  })

  test('a key goes where the default partitioner of kafkajs puts it, whatever it is', async () => {
    await broker.createTopics(['spread'], {}, 7)
    const producer = broker.relayProducer()
    await producer.connect()
    const messages = Array.from({ length: 500 }, (_, n) => ({
      key: `${n * n}-${'é'.repeat(n % 5)}`,
      value: '',
      headers: {},
    }))
    await producer.sendBatch({ topicMessages: [{ topic: 'spread', messages }] })
    await producer.disconnect()
    const choose = Partitioners.DefaultPartitioner()
    const partitionMetadata = Array.from({ length: 7 }, (_, partitionId) => ({
      partitionId,
      partitionErrorCode: 0,
      leader: 1,
      replicas: [1],
      isr: [1],
    }))
    for (const { key, partition } of await broker.read('spread')) {
      expect(partition).toBe(choose({ topic: 'spread', partitionMetadata, message: { key, value: '' } }))
    }
  })
})
