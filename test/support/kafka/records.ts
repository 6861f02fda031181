import { Kafka, logLevel } from 'kafkajs'
import { makeTopics } from './make-topics.ts'

/** One record as a consumer got it. */
export interface KafkaRecord {
  readonly topic: string
  readonly partition: number
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly value: string | null
}

/** What a consumer has got so far, in the order in which it came. */
export interface Records extends AsyncDisposable {
  readonly all: readonly KafkaRecord[]
}

/** Makes the topics if they are not there, and reads them from their beginning until it is disposed of. */
export async function readTopics(
  bootstrap: string,
  topics: readonly string[],
  onRecord: (record: KafkaRecord) => void = () => undefined,
): Promise<Records> {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
  await makeTopics(
    kafka,
    topics.map((topic) => ({ topic })),
  )
  const consumer = kafka.consumer({ groupId: `readers-of-${topics.join('-')}` })
  const all: KafkaRecord[] = []
  await consumer.connect()
  await consumer.subscribe({ topics: [...topics], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ topic, partition, message }) => {
      const { key, value } = message
      const given = Object.entries(message.headers ?? {}).filter(([, header]) => header !== null)
      const headers = given.map(([name, header]) => [name, String(header)])
      const record = {
        topic,
        partition,
        key: key?.toString() ?? null,
        headers: Object.fromEntries(headers),
        value: value?.toString() ?? null,
      }
      all.push(record)
      onRecord(record)
    },
  })
  return { all, [Symbol.asyncDispose]: () => consumer.disconnect() }
}
