import { sequenceChecker } from '../../src/kafka/index.ts'
import { type KafkaCluster, startKafkaCluster } from '../support/kafka/cluster.ts'
import { makeTopics } from '../support/kafka/make-topics.ts'
import { yet } from '../support/kafka/yet.ts'
import { comes } from '../support/patience.ts'
import { KafkaClients, type SeenMessage } from './kafka-support.ts'

/** Brokers of a test file's own, and clients of them. */
export class TestCluster extends KafkaClients implements AsyncDisposable {
  readonly cluster: KafkaCluster

  private constructor(cluster: KafkaCluster) {
    super(cluster.bootstrap)
    this.cluster = cluster
  }

  static async start(): Promise<TestCluster> {
    return new TestCluster(await startKafkaCluster())
  }

  /** Makes a topic whose partitions are on these brokers, of which the first is to lead. */
  async createTopic(
    topic: string,
    partitions: readonly (readonly number[])[],
    config: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const replicaAssignment = partitions.map((replicas, partition) => ({
      partition,
      replicas: [...replicas],
    }))
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    await makeTopics(this.patientClient, [{ topic, replicaAssignment, configEntries }])
    await this.untilLedBy(
      topic,
      partitions.map(([leader]) => leader as number),
    )
  }

  /** Has a partition moved to these brokers, and waits until the first of them leads it. */
  async move(topic: string, partition: number, replicas: readonly number[]): Promise<void> {
    const admin = this.patientClient.admin()
    await admin.connect()
    const partitionAssignment = [{ partition, replicas: [...replicas] }]
    await admin.alterPartitionReassignments({ topics: [{ topic, partitionAssignment }] })
    await admin.disconnect()
    await comes(`${topic}/${partition} is led by ${replicas[0]}`, () =>
      yet(async () => (await this.#partitions(topic))[partition]?.leader === replicas[0]),
    )
  }

  /** Until these brokers lead the partitions, in their order, and no replica is missing. */
  async untilLedBy(topic: string, leaders: readonly number[]): Promise<void> {
    await comes(`${topic} is led by ${leaders.join(', ')}`, () =>
      yet(async () => {
        const partitions = await this.#partitions(topic)
        return partitions.every(
          ({ leader, replicas, isr }, partition) =>
            leader === leaders[partition] && isr.length === replicas.length,
        )
      }),
    )
  }

  /** Every broker is asked, since each learns by itself what was decided. */
  async #partitions(topic: string): Promise<readonly Led[]> {
    const admin = this.patientClient.admin()
    await admin.connect()
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      return (topics[0]?.partitions ?? []).toSorted((one, other) => one.partitionId - other.partitionId)
    } finally {
      await admin.disconnect()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]()
  }
}

interface Led {
  readonly leader: number
  readonly replicas: readonly number[]
  readonly isr: readonly number[]
}

/** How many events are there, how many of them again, how often one at most, and how often one was missing before another of its key. */
export function judged(seen: readonly SeenMessage[]): {
  readonly distinct: number
  readonly repeats: number
  readonly copies: number
  readonly gaps: number
} {
  const checker = sequenceChecker({ fromBeginning: true })
  const copies = new Map<string, number>()
  for (const { headers, key } of seen) {
    checker.check({ eventId: '', orderingKey: key ?? '', sequence: Number(headers['sequence']) })
    const id = headers['eventId'] ?? ''
    copies.set(id, (copies.get(id) ?? 0) + 1)
  }
  const { repeat, gap } = checker.counts
  return { distinct: copies.size, repeats: repeat, copies: Math.max(...copies.values()), gaps: gap }
}
