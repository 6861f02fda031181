import { type EachMessagePayload, Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'
import { type KafkaProducer, relayProducer } from '../../src/kafka/index.ts'
import { type KafkaOptions, type KafkaServer, startKafka } from '../support/kafka/broker.ts'
import { makeTopics } from '../support/kafka/make-topics.ts'
import { yet } from '../support/kafka/yet.ts'
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

/** A broker that is down refuses at once; this is for one that has much else to do. */
const CONNECTION_TIMEOUT_MS = 10_000

/** Clients of a Kafka, and what is in it. */
export class KafkaClients {
  /** For what is tested. Tries again only twice, so that tests of outages need not wait for that. */
  readonly client: Kafka
  /** For what a test does itself: to make topics, to write and to read. Does not give up because the machine is slow. */
  protected readonly patientClient: Kafka
  readonly #brokers: readonly string[]

  constructor(given: readonly string[]) {
    const brokers = [...given]
    this.#brokers = brokers
    const both = { brokers, logLevel: logLevel.NOTHING, connectionTimeout: CONNECTION_TIMEOUT_MS }
    this.patientClient = new Kafka({
      ...both,
      retry: { retries: 20, initialRetryTime: 50, maxRetryTime: 1_000 },
    })
    this.client = new Kafka({ ...both, retry: { retries: 2, initialRetryTime: 50 } })
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
    relayProducer({ brokers: this.#brokers, connectionTimeout: CONNECTION_TIMEOUT_MS })

  async createTopics(
    topics: readonly string[],
    config: Readonly<Record<string, string>> = {},
    numPartitions = 4,
  ): Promise<void> {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    await makeTopics(
      this.patientClient,
      topics.map((topic) => ({ topic, numPartitions, configEntries })),
    )
  }

  /** Everything that is in these topics now; in each partition in its order. */
  async read(...topics: readonly string[]): Promise<readonly SeenMessage[]> {
    const ends = new Map((await Promise.all(topics.map((topic) => this.#ends(topic)))).flat())
    const count = [...ends.values()].reduce((sum, end) => sum + end, 0)
    const consumer = this.patientClient.consumer({ groupId: `reader-${readers++}`, maxWaitTimeInMs: 50 })
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
    const admin = this.patientClient.admin()
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
    const admin = this.patientClient.admin()
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
