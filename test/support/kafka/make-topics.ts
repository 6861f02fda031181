import { setTimeout as sleep } from 'node:timers/promises'
import type { Admin, ITopicConfig, Kafka } from 'kafkajs'
import { yet } from './yet.ts'

/**
 * Makes the topics that are not there, and waits until each partition of them is really led. kafkajs's own waiting ends
 * with an error where the broker does not yet know of the topic that it has just made, as a busy one may.
 */
export async function makeTopics(client: Kafka, topics: readonly ITopicConfig[]): Promise<void> {
  const admin = client.admin()
  await admin.connect()
  try {
    await admin.createTopics({ topics: [...topics], waitForLeaders: false })
    const names = topics.map(({ topic }) => topic)
    while (!(await yet(() => areLed(admin, names)))) await sleep(20)
  } finally {
    await admin.disconnect()
  }
}

/**
 * That somebody is to lead a partition is known before he does: he would still refuse what is sent to him, and the sender
 * might send all of it again. So each leader is asked for something that only he can say, where his partition ends.
 */
async function areLed(admin: Admin, names: string[]): Promise<boolean> {
  const { topics } = await admin.fetchTopicMetadata({ topics: names })
  const haveLeaders = topics.every(
    ({ partitions }) => partitions.length > 0 && partitions.every(({ leader }) => leader >= 0),
  )
  if (!haveLeaders) return false
  for (const name of names) await admin.fetchTopicOffsets(name)
  return true
}
