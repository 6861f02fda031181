// pg-transactional-outbox on the way to Kafka, and at a pace: its listener in a process of its own, from its own table.
import { setTimeout as sleep } from 'node:timers/promises'
import { pace } from '../support/pace.ts'
import { nowMicros, payloadOf } from '../support/payload.ts'
import type { ForwardReport, ForwardTask } from '../support/protocol.ts'
import { type Program, startProgram } from '../support/start-program.ts'
import { percentile } from '../support/statistics.ts'
import { CONNECTIONS, drop, load, PLACE, prepare } from './pg-transactional-outbox.ts'
import { PACED, pacedCounts, type Stage } from './stage.ts'
import type { Topics } from './topics.ts'

type Figures = Readonly<Record<string, number>>

/** The contender that forwards. */
export const FORWARDING = `pg-transactional-outbox, semaphore of ${CONNECTIONS}`
/** It does some hundred a second. */
const BACKLOG = 4_000
/** What has not arrived so long after the last was sent is counted as missing: it passes over a row that it cannot see yet. */
const LATE_MS = 3_000

/** Its rate to a topic, by the end offsets of the topic, as for the others. */
export async function forwardBacklog(stage: Stage, prefix: string, topics: Topics): Promise<Figures> {
  const { pool } = stage.database
  const count = Math.min(stage.events, BACKLOG)
  await prepare(pool)
  await load(pool, count, stage.keys)
  const topic = `${prefix}.order`
  const program = await start(stage, { bootstrap: topics.bootstrap, topic })
  const perSecond = await topics.rate(topic, 0, count)
  await end(stage, program)
  return { perSecond }
}

/** Its latency to a handler. */
export async function forwardPaced(stage: Stage): Promise<Figures> {
  await prepare(stage.database.pool)
  const program = await start(stage, null)
  const { warmUp, count } = pacedCounts(stage)
  await publishPaced(stage, warmUp + count)
  const { latencies } = await end(stage, program)
  // In the order in which they came, so that what is left out is what came while it was cold.
  return figuresOf(latencies.slice(warmUp), count)
}

/** Its latency to a consumer of a topic. */
export async function forwardPacedToKafka(stage: Stage, prefix: string, topics: Topics): Promise<Figures> {
  await prepare(stage.database.pool)
  const topic = `${prefix}.order`
  const program = await start(stage, { bootstrap: topics.bootstrap, topic })
  const latencies: number[] = []
  const consumer = await topics.follow(topic, ({ sentAt = Number.NaN }) =>
    latencies.push(nowMicros() - sentAt),
  )
  const { warmUp, count } = pacedCounts(stage)
  await publishPaced(stage, warmUp + count)
  await consumer.disconnect()
  await end(stage, program)
  return figuresOf(latencies.slice(warmUp), count)
}

async function start({ database }: Stage, kafka: ForwardTask['kafka']): Promise<Program<ForwardReport>> {
  const task: ForwardTask = {
    ...PLACE,
    url: database.url,
    concurrency: 'semaphore',
    connections: CONNECTIONS,
    mostSeconds: 60,
    kafka,
  }
  const program = startProgram<ForwardReport>('forward-pg-transactional-outbox', task)
  await program.ready
  program.tell({ type: 'go' })
  return program
}

async function end({ database }: Stage, program: Program<ForwardReport>): Promise<ForwardReport> {
  program.tell({ type: 'stop' })
  const report = await program.report
  await drop(database.pool)
  return report
}

async function publishPaced({ database: { pool } }: Stage, count: number): Promise<void> {
  const sql = `insert into ${PLACE.schema}.${PLACE.table}
      (id, aggregate_type, aggregate_id, message_type, segment, payload)
    values (gen_random_uuid(), 'order', $1, 'OrderPlaced', $1, $2)`
  await pace(count, PACED.perSecond, async (index) => {
    const payload = { ...payloadOf(index), sentAt: nowMicros() }
    const client = await pool.connect()
    await client.query('begin')
    await client.query(sql, [String(index % 1_000), payload])
    await client.query('commit')
    client.release()
  })
  await sleep(LATE_MS)
}

function figuresOf(latencies: readonly number[], count: number): Figures {
  return {
    p50Ms: percentile(latencies, 0.5) / 1_000,
    p99Ms: percentile(latencies, 0.99) / 1_000,
    missing: count - latencies.length,
  }
}
