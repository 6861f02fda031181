import { setTimeout as sleep } from 'node:timers/promises'
import { type Consumer, Kafka, logLevel } from 'kafkajs'
import { makeTopics } from '../../test/support/kafka/make-topics.ts'
import type { BenchPayload } from '../support/payload.ts'

/** Between two looks at the offsets: looking without a pause took a core from whoever is measured. */
const LOOK_EVERY_MS = 10

/** The broker of a run, as the clock uses it. */
export class Topics {
  readonly bootstrap: string
  readonly #client: Kafka

  constructor(bootstrap: string) {
    this.bootstrap = bootstrap
    this.#client = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
  }

  async make(topic: string): Promise<void> {
    await makeTopics(this.#client, [{ topic, numPartitions: 4 }])
  }

  /**
   * Resolves when so many messages are there. Returns how many a second came between the first look at more than there were
   * before and the end.
   */
  async rate(topic: string, before: number, count: number): Promise<number> {
    const admin = this.#client.admin()
    await admin.connect()
    let first: { readonly atMs: number; readonly count: number } | null = null
    try {
      for (;;) {
        const offsets = await admin.fetchTopicOffsets(topic)
        const there = offsets.reduce((sum, { high }) => sum + Number(high), 0)
        const atMs = performance.now()
        if (first === null && there > before) first = { atMs, count: there }
        if (there >= count) return ((there - (first?.count ?? 0)) * 1_000) / (atMs - (first?.atMs ?? 0))
        await sleep(LOOK_EVERY_MS)
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
