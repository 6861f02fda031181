import { type Consumer, Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'
import type { BenchPayload } from '../support/payload.ts'

/** The broker of a run, as contenders and the clock use it. */
export class Topics {
  readonly #client: Kafka

  constructor(bootstrap: string) {
    this.#client = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
  }

  readonly producer = (): Producer =>
    this.#client.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      createPartitioner: Partitioners.DefaultPartitioner,
    })

  async make(topic: string): Promise<void> {
    const admin = this.#client.admin()
    await admin.connect()
    await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 4 }] })
    await admin.disconnect()
  }

  /** Resolves when so many messages are there. Returns how many a second came between the first look at some and the end. */
  async rate(topic: string, count: number): Promise<number> {
    const admin = this.#client.admin()
    await admin.connect()
    let first: { readonly atMs: number; readonly count: number } | null = null
    try {
      for (;;) {
        const offsets = await admin.fetchTopicOffsets(topic)
        const there = offsets.reduce((sum, { high }) => sum + Number(high), 0)
        const atMs = performance.now()
        if (first === null && there > 0) first = { atMs, count: there }
        if (there >= count) return ((there - (first?.count ?? 0)) * 1_000) / (atMs - (first?.atMs ?? 0))
      }
    } finally {
      await admin.disconnect()
    }
  }

  /** Reads a topic from its end on, and hands over what arrives. Resolves once it is read. */
  async follow(topic: string, onEvent: (payload: BenchPayload) => void): Promise<Consumer> {
    const consumer = this.#client.consumer({ groupId: `follow-${topic}`, maxWaitTimeInMs: 5, minBytes: 1 })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    const joined = new Promise((resolve) => consumer.on('consumer.group_join', resolve))
    await consumer.run({
      eachMessage: async ({ message }) => onEvent(JSON.parse(String(message.value)) as BenchPayload),
    })
    await joined
    return consumer
  }
}
