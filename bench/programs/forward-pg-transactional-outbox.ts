// The logical replication listener of pg-transactional-outbox, until it is told to stop: to a topic, or to a clock.
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { type BenchPayload, nowMicros } from '../support/payload.ts'
import { startListener, type TransactionalOutboxMessage } from '../support/pg-transactional-outbox.ts'
import { runProgram } from '../support/program.ts'
import type { ForwardReport, ForwardTask } from '../support/protocol.ts'

await runProgram<ForwardTask>(async (task, talk): Promise<ForwardReport> => {
  const latencies: number[] = []
  const { handle, close } = task.kafka === null ? toClock(latencies) : await toTopic(task.kafka)
  const stop = await startListener(task, handle)
  await talk.ready()
  await talk.stopped
  await stop()
  await close()
  return { latencies }
})
process.exit()

interface Destination {
  readonly handle: (message: TransactionalOutboxMessage) => Promise<void>
  readonly close: () => Promise<void>
}

function toClock(latencies: number[]): Destination {
  return {
    handle: async ({ payload }) => {
      const { sentAt = Number.NaN } = payload as BenchPayload
      latencies.push(nowMicros() - sentAt)
    },
    close: async () => undefined,
  }
}

/** One message a request: it hands them over one by one, and each is confirmed before it is marked as processed. */
async function toTopic({ bootstrap, topic }: NonNullable<ForwardTask['kafka']>): Promise<Destination> {
  const client = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
  const producer = client.producer({
    idempotent: true,
    maxInFlightRequests: 1,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  return {
    handle: async ({ aggregateId, payload }) => {
      const messages = [{ key: aggregateId, value: JSON.stringify(payload) }]
      await producer.send({ topic, acks: -1, messages })
    },
    close: () => producer.disconnect(),
  }
}
