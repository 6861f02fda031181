import { benchOutbox, loadBacklog } from '../support/commitpost.ts'
import { pace } from '../support/pace.ts'
import { type BenchPayload, nowMicros, payloadOf } from '../support/payload.ts'
import { type Bar, bar, type Results } from '../support/results.ts'
import { percentile } from '../support/statistics.ts'
import { turned } from '../support/turned.ts'
import { FORWARDING, forwardBacklog, forwardPaced, forwardPacedToKafka } from './forwarding.ts'
import { measureMemory } from './memory.ts'
import { measureTransactionalOutbox, TRANSACTIONAL_OUTBOX_WAYS } from './pg-transactional-outbox.ts'
import { clear, loadAndWait, PACED, pacedCounts, type Stage, until } from './stage.ts'
import type { Topics } from './topics.ts'
import {
  BARE_WAYS,
  DEBEZIUM_WAYS,
  KAFKA_WAYS,
  type KafkaWay,
  LOG,
  NO_OP_WAYS,
  type NoOpWay,
  PILE_UP_MS,
  TUNED,
} from './ways.ts'

/** One thing that is measured, for all contenders in turn. */
export interface StreamScenario {
  readonly name: string
  run(stage: Stage): Promise<void>
  bars(results: Results): readonly Bar[]
}

type Figures = Readonly<Record<string, number>>

/** A process that was just started is not compared with one that has run for minutes. */
const WARM_UP_SHARE = 0.25
/** To a function that counts all goes faster than to Kafka: with as many events it would be over in a second. */
const NO_OP_TIMES = 3

/** The rate of one of the ways to a function that counts, and what it cost. */
async function rateOf(stage: Stage, { start }: NoOpWay): Promise<Figures> {
  const events = stage.events * NO_OP_TIMES
  let count = 0
  let firstMs = 0
  let lastMs = 0
  const stop = await start(stage, () => {
    count += 1
    if (count === 1) firstMs = performance.now()
    if (count === events) lastMs = performance.now()
  })
  const warmUp = Math.round(stage.events * WARM_UP_SHARE)
  await loadBacklog(stage.database.pool, warmUp, stage.keys)
  await until(() => count >= warmUp, 5)
  count = 0
  const cpu = await loadAndWait({ ...stage, events }, () => until(() => count >= events, 5))
  await stop()
  return { perSecond: (events * 1_000) / (lastMs - firstMs), ...cpu }
}

interface NoOpMeasurement {
  readonly name: string
  readonly measure: (stage: Stage) => Promise<Figures>
}

const NO_OP_RATES: readonly NoOpMeasurement[] = [
  ...[...BARE_WAYS, ...NO_OP_WAYS].map((way) => ({
    name: way.name,
    measure: (stage: Stage) => rateOf(stage, way),
  })),
  ...TRANSACTIONAL_OUTBOX_WAYS.map((way) => ({
    name: way.name,
    measure: (stage: Stage) => measureTransactionalOutbox(stage, way),
  })),
]

/** Each of them in turn. */
async function measureNoOp(
  stage: Stage,
  scenario: string,
  measurements: readonly NoOpMeasurement[],
): Promise<void> {
  for (const { name, measure } of turned(measurements, stage.round)) {
    stage.progress(`${scenario}: ${name}`)
    await clear(stage)
    const figures = await measure(stage)
    stage.results.add({ scenario, contender: name, round: stage.round, figures })
  }
}

const noOp: StreamScenario = {
  name: 'no-op',
  run: (stage) => measureNoOp(stage, 'no-op', NO_OP_RATES),
  bars: (results) => [
    ...bar(
      'no-op, log stream against the best bare reader of the log',
      results.ratioToBest('perSecond', 'no-op', LOG, BARE_WAYS),
      'at least',
      0.8,
    ),
    ...bar(
      'no-op, log stream against the best of pg-transactional-outbox',
      results.ratioToBest('perSecond', 'no-op', LOG, TRANSACTIONAL_OUTBOX_WAYS),
      'at least',
      20,
    ),
    ...bar(
      'no-op, log stream, events a second on this machine',
      results.median('no-op', LOG, 'perSecond'),
      'at least',
      100_000,
    ),
  ],
}

/** The rate of one of the ways to a topic, by its end offsets, and what it cost. */
async function kafkaRateOf(
  stage: Stage,
  { start }: KafkaWay,
  prefix: string,
  topics: Topics,
): Promise<Figures> {
  const stop = await start(stage, prefix)
  const warmUp = Math.round(stage.events * WARM_UP_SHARE)
  await loadBacklog(stage.database.pool, warmUp, stage.keys)
  await topics.rate(`${prefix}.order`, 0, warmUp)
  let perSecond = 0
  const { postgresMicros } = await loadAndWait(stage, async () => {
    perSecond = await topics.rate(`${prefix}.order`, warmUp, warmUp + stage.events)
  })
  const { nodeMicros } = await stop()
  const node = nodeMicros === null ? {} : { nodeMicros: nodeMicros / (warmUp + stage.events) }
  return { perSecond, ...node, postgresMicros }
}

interface KafkaMeasurement {
  readonly name: string
  readonly measure: (stage: Stage, prefix: string, topics: Topics) => Promise<Figures>
}

const KAFKA_RATES: readonly KafkaMeasurement[] = [
  ...KAFKA_WAYS.map((way) => ({
    name: way.name,
    measure: (stage: Stage, prefix: string, topics: Topics) => kafkaRateOf(stage, way, prefix, topics),
  })),
  { name: FORWARDING, measure: forwardBacklog },
]

/** Each of them in turn, with a topic of its own. */
async function measureToKafka(
  stage: Stage,
  scenario: string,
  measurements: readonly KafkaMeasurement[],
): Promise<void> {
  if (stage.servers === null) return
  const { topics } = stage.servers
  for (const [index, { name, measure }] of turned(measurements, stage.round).entries()) {
    stage.progress(`${scenario}: ${name}`)
    await clear(stage)
    const prefix = `${scenario}-${stage.round}-${index}`
    await topics.make(`${prefix}.order`)
    const figures = await measure(stage, prefix, topics)
    stage.results.add({ scenario, contender: name, round: stage.round, figures })
  }
}

const kafkaThroughput: StreamScenario = {
  name: 'kafka',
  run: (stage) => measureToKafka(stage, 'kafka', KAFKA_RATES),
  bars: (results) =>
    bar(
      'Kafka, log stream against the best of Debezium, events a second',
      results.ratioToBest('perSecond', 'kafka', LOG, DEBEZIUM_WAYS),
      'at least',
      1.5,
    ),
}

/** How long each of the paced events took, in milliseconds, from the publishing call to where it arrives. */
async function latenciesOf(
  stage: Stage,
  listen: (onEvent: (payload: BenchPayload | null) => void) => Promise<() => Promise<void>>,
): Promise<Figures> {
  const tookMs: number[] = []
  const stop = await listen((payload) => {
    if (payload?.sentAt !== undefined) tookMs.push((nowMicros() - payload.sentAt) / 1_000)
  })
  const { pool } = stage.database
  const outbox = benchOutbox(pool)
  const publish = (index: number): Promise<unknown> =>
    outbox.inTransaction(pool, (tx) =>
      outbox.publish(tx, 'OrderPlaced', {
        aggregateId: index % 1_000,
        payload: { ...payloadOf(index), sentAt: nowMicros() },
      }),
    )
  const { warmUp, count } = pacedCounts(stage)
  await pace(warmUp, PACED.perSecond, publish)
  await until(() => tookMs.length >= warmUp)
  tookMs.length = 0
  await pace(count, PACED.perSecond, publish)
  await until(() => tookMs.length >= count)
  await stop()
  return { p50Ms: percentile(tookMs, 0.5), p99Ms: percentile(tookMs, 0.99) }
}

const NO_OP_LATENCIES: readonly NoOpMeasurement[] = [
  ...NO_OP_WAYS.map(({ name, start }) => ({
    name,
    measure: (stage: Stage) => latenciesOf(stage, (onEvent) => start(stage, onEvent)),
  })),
  { name: FORWARDING, measure: forwardPaced },
]

const noOpLatency: StreamScenario = {
  name: 'no-op-latency',
  run: (stage) => measureNoOp(stage, 'no-op-latency', NO_OP_LATENCIES),
  bars: () => [],
}

async function kafkaLatenciesOf(
  stage: Stage,
  { start }: KafkaWay,
  prefix: string,
  topics: Topics,
): Promise<Figures> {
  const stop = await start(stage, prefix)
  const figures = await latenciesOf(stage, async (onEvent) => {
    const consumer = await topics.follow(`${prefix}.order`, onEvent)
    return () => consumer.disconnect()
  })
  await stop()
  return figures
}

const KAFKA_LATENCIES: readonly KafkaMeasurement[] = [
  ...KAFKA_WAYS.map((way) => ({
    name: way.name,
    measure: (stage: Stage, prefix: string, topics: Topics) => kafkaLatenciesOf(stage, way, prefix, topics),
  })),
  { name: FORWARDING, measure: forwardPacedToKafka },
]

const kafkaLatency: StreamScenario = {
  name: 'kafka-latency',
  run: (stage) => measureToKafka(stage, 'kafka-latency', KAFKA_LATENCIES),
  bars: (results) =>
    (['p50Ms', 'p99Ms'] as const).flatMap((figure) =>
      bar(
        `Kafka, log stream against the best of Debezium, latency ${figure}`,
        results.ratioToBest(figure, 'kafka-latency', LOG, DEBEZIUM_WAYS, 'lowest'),
        'under',
        1,
      ),
    ),
}

const MEMORY_EVENTS = 1_000_000

const memory: StreamScenario = {
  name: 'memory',
  run: async (stage) => {
    // It is the same in every round.
    if (stage.round > 1) return
    stage.progress('memory: a handler that never returns')
    await clear(stage)
    const count = Math.round(Math.min(1, stage.events / 200_000) * MEMORY_EVENTS)
    const residentMb = await measureMemory({ ...stage, events: count })
    const figures = { residentMb, behind: count }
    stage.results.add({ scenario: 'memory', contender: LOG, round: stage.round, figures })
  },
  bars: (results) =>
    bar(
      'resident memory with 1M events behind a stopped handler, MB',
      results.median('memory', LOG, 'residentMb'),
      'under',
      200,
    ),
}

/** What decides the figures, beside the machine. */
export const STREAM_METHOD = {
  warmUpShare: WARM_UP_SHARE,
  noOpTimes: NO_OP_TIMES,
  paced: PACED,
  memoryEvents: MEMORY_EVENTS,
  bareReaderEveryMs: PILE_UP_MS,
  debeziumTuned: TUNED,
} as const

/** Everything that `npm run bench -- stream` measures. */
export const STREAM_SCENARIOS: readonly StreamScenario[] = [
  noOp,
  kafkaThroughput,
  noOpLatency,
  kafkaLatency,
  memory,
]
