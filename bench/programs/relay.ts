// A relay of Commitpost to Kafka, until it is told to stop: a process of its own, as Debezium is.
import pg from 'pg'
import { relay } from '../../src/index.ts'
import { kafka, relayProducer } from '../../src/kafka/index.ts'
import { benchOutbox } from '../support/commitpost.ts'
import { runProgram } from '../support/program.ts'
import type { RelayReport, RelayTask } from '../support/protocol.ts'

await runProgram<RelayTask>(async ({ url, bootstrap, engine, prefix }, talk): Promise<RelayReport> => {
  const producer = () => relayProducer({ brokers: [bootstrap] })
  const via = kafka({ producer, topic: `${prefix}.{aggregateType}` })
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const worker = benchOutbox(pool).worker([
    relay('bench', { engine, via, order: 'aggregate', batchSize: 1_000 }),
  ])
  await worker.start()
  await worker.active()
  await talk.ready()
  const before = process.cpuUsage()
  await talk.stopped
  const { user, system } = process.cpuUsage(before)
  await worker.stop()
  await pool.end()
  return { cpuMicros: user + system }
})
