import { type EachMessagePayload, Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'
import { type KafkaProducer, relayProducer } from '../../src/kafka/index.ts'
import { property } from '../../src/runtime/property.ts'
import { type KafkaOptions, type KafkaServer, startKafka } from '../support/kafka/broker.ts'
import { makeTopics } from '../support/kafka/make-topics.ts'
import { comes } from '../support/patience.ts'

/** One message as it stands in a topic. */
export interface SeenMessage {
  readonly topic: string
  readonly partition: number
  readonly offset: string
  readonly key: string | null
  readonly value: string
  /** The value as it is, text or not. */
  readonly bytes: Buffer | null
  readonly headers: Readonly<Record<string, string>>
}

/** What relays are tested with: a producer of kafkajs, and our own. */
export const RELAY_PRODUCERS = ['producer', 'relayProducer'] as const

/** Clients of a Kafka, and what is in it. */
export class KafkaClients {
  /** Gives up soon, so that tests of outages need not wait for its own tries. */
  readonly client: Kafka
  readonly #readingClient: Kafka
  readonly #brokers: readonly string[]

  constructor(given: readonly string[]) {
    const brokers = [...given]
    this.#brokers = brokers
    this.#readingClient = new Kafka({ brokers, logLevel: logLevel.NOTHING })
    this.client = new Kafka({
      brokers,
      logLevel: logLevel.NOTHING,
      connectionTimeout: 1_000,
      retry: { retries: 2, initialRetryTime: 50 },
    })
  }

  /** A producer as the transport wants it. It makes no topics by itself. */
  readonly producer = (): Producer =>
    this.client.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      createPartitioner: Partitioners.DefaultPartitioner,
    })

  /** The same without kafkajs. */
  readonly relayProducer = (): KafkaProducer =>
    relayProducer({ brokers: this.#brokers, connectionTimeout: 1_000 })

  async createTopics(
    topics: readonly string[],
    config: Readonly<Record<string, string>> = {},
    numPartitions = 4,
  ): Promise<void> {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    await makeTopics(
      this.client,
      topics.map((topic) => ({ topic, numPartitions, configEntries })),
    )
  }

  /** Everything that is in these topics now; in each partition in its order. */
  async read(...topics: readonly string[]): Promise<readonly SeenMessage[]> {
    const ends = new Map((await Promise.all(topics.map((topic) => this.#ends(topic)))).flat())
    const count = [...ends.values()].reduce((sum, end) => sum + end, 0)
    const consumer = this.#readingClient.consumer({ groupId: `reader-${readers++}`, maxWaitTimeInMs: 50 })
    const seen: SeenMessage[] = []
    await consumer.connect()
    await consumer.subscribe({ topics: [...topics], fromBeginning: true })
    await consumer.run({ eachMessage: async (each) => void seen.push(seenMessage(each)) })
    try {
      await comes(`all ${count} messages of ${topics.join(', ')} are read`, () => seen.length >= count)
    } finally {
      await consumer.disconnect()
    }
    return seen
  }

  /** A partition whose leader has just moved does not say yet where it ends. */
  async #ends(topic: string): Promise<readonly (readonly [string, number])[]> {
    const admin = this.client.admin()
    await admin.connect()
    let offsets: Awaited<ReturnType<typeof admin.fetchTopicOffsets>> = []
    await comes(`${topic} says where it ends`, () =>
      yet(async () => {
        offsets = await admin.fetchTopicOffsets(topic)
        return true
      }),
    )
    await admin.disconnect()
    return offsets.map(({ partition, high }) => [`${topic}/${partition}`, Number(high)])
  }

  /** The offset up to which a group has committed each partition of a topic; only those it has. */
  async committed(groupId: string, topic: string): Promise<readonly number[]> {
    const admin = this.client.admin()
    await admin.connect()
    const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] })
    await admin.disconnect()
    return (offsets?.partitions ?? []).map(({ offset }) => Number(offset)).filter((offset) => offset >= 0)
  }
}

/** A broker of a test file's own, and clients of it. */
export class TestKafka extends KafkaClients implements AsyncDisposable {
  readonly server: KafkaServer

  private constructor(server: KafkaServer) {
    super([server.bootstrap])
    this.server = server
  }

  static async start(options: KafkaOptions = {}): Promise<TestKafka> {
    return new TestKafka(await startKafka(options))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop()
  }
}

/** Whether it is so; false where the broker that is asked has not learnt yet what was decided. */
export async function yet(isSo: () => Promise<boolean>): Promise<boolean> {
  try {
    return await isSo()
  } catch (error) {
    if (property(error, 'retriable') === true) return false
    throw error
  }
}

let readers = 0

function seenMessage({ topic, partition, message }: EachMessagePayload): SeenMessage {
  const headers = Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)])
  return {
    topic,
    partition,
    offset: message.offset,
    key: message.key === null ? null : String(message.key),
    value: String(message.value),
    bytes: message.value,
    headers: Object.fromEntries(headers),
  }
}
