import { setTimeout as sleep } from 'node:timers/promises'
import type { ITopicConfig, Kafka } from 'kafkajs'
import { textProperty } from '../../../src/runtime/property.ts'

/**
 * Makes the topics that are not there, and waits until each partition of them has a leader. kafkajs's own waiting ends
 * with an error where the broker does not yet know of the topic that it has just made, as a busy one may.
 */
export async function makeTopics(client: Kafka, topics: readonly ITopicConfig[]): Promise<void> {
  const admin = client.admin()
  await admin.connect()
  try {
    await admin.createTopics({ topics: [...topics], waitForLeaders: false })
    const names = topics.map(({ topic }) => topic)
    while (!(await areLed(() => admin.fetchTopicMetadata({ topics: names })))) await sleep(20)
  } finally {
    await admin.disconnect()
  }
}

type Metadata = Awaited<ReturnType<ReturnType<Kafka['admin']>['fetchTopicMetadata']>>

async function areLed(fetch: () => Promise<Metadata>): Promise<boolean> {
  try {
    const { topics } = await fetch()
    return topics.every(
      ({ partitions }) => partitions.length > 0 && partitions.every(({ leader }) => leader >= 0),
    )
  } catch (error) {
    if (NOT_YET.has(textProperty(error, 'type') ?? '')) return false
    throw error
  }
}

const NOT_YET = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE'])
