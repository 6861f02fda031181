import { benchOutbox } from '../support/commitpost.ts'
import { pace } from '../support/pace.ts'
import { type BenchPayload, nowMicros, payloadOf } from '../support/payload.ts'
import { type Bar, bar, type Results } from '../support/results.ts'
import { percentile } from '../support/statistics.ts'
import { measureMemory } from './memory.ts'
import { measureTransactionalOutbox, TRANSACTIONAL_OUTBOX_WAYS } from './pg-transactional-outbox.ts'
import { clear, loadAndWait, type Stage, until } from './stage.ts'
import { BARE, DEBEZIUM_WAYS, KAFKA_WAYS, LOG, NO_OP_WAYS, type NoOpWay } from './ways.ts'

/** One thing that is measured, for all contenders in turn. */
export interface StreamScenario {
  readonly name: string
  run(stage: Stage): Promise<void>
  bars(results: Results): readonly Bar[]
}

/** Each round begins with another one. */
function turned<Each>(all: readonly Each[], round: number): readonly Each[] {
  const first = round % all.length
  return [...all.slice(first), ...all.slice(0, first)]
}

type Figures = Readonly<Record<string, number>>

/** The rate of one of the ways to a function that counts, and what it cost. */
async function rateOf(stage: Stage, { start }: NoOpWay): Promise<Figures> {
  let count = 0
  let firstMs = 0
  let lastMs = 0
  const stop = await start(stage, () => {
    count += 1
    if (count === 1) firstMs = performance.now()
    if (count === stage.events) lastMs = performance.now()
  })
  const cpu = await loadAndWait(stage, () => until(() => count >= stage.events, 5))
  await stop()
  return { perSecond: (stage.events * 1_000) / (lastMs - firstMs), ...cpu }
}

const NO_OP_RATES: readonly {
  readonly name: string
  readonly measure: (stage: Stage) => Promise<Figures>
}[] = [
  ...NO_OP_WAYS.map((way) => ({ name: way.name, measure: (stage: Stage) => rateOf(stage, way) })),
  ...TRANSACTIONAL_OUTBOX_WAYS.map((way) => ({
    name: way.name,
    measure: (stage: Stage) => measureTransactionalOutbox(stage, way),
  })),
]

const noOp: StreamScenario = {
  name: 'no-op',
  run: async (stage) => {
    for (const { name, measure } of turned(NO_OP_RATES, stage.round)) {
      stage.progress(`no-op: ${name}`)
      await clear(stage)
      const figures = await measure(stage)
      stage.results.add({ scenario: 'no-op', contender: name, round: stage.round, figures })
    }
  },
  bars: (results) => [
    ...bar(
      'no-op, log stream against a bare reader of the log',
      results.ratio('perSecond', ['no-op', LOG], ['no-op', BARE]),
      'at least',
      0.8,
    ),
    ...bar(
      'no-op, log stream against the best of pg-transactional-outbox',
      results.ratioToBest('perSecond', 'no-op', LOG, TRANSACTIONAL_OUTBOX_WAYS),
      'at least',
      20,
    ),
  ],
}

const kafkaThroughput: StreamScenario = {
  name: 'kafka',
  run: async (stage) => {
    if (stage.servers === null) return
    for (const [index, { name, start }] of turned(KAFKA_WAYS, stage.round).entries()) {
      stage.progress(`kafka: ${name}`)
      await clear(stage)
      const prefix = `rate-${stage.round}-${index}`
      const { topics } = stage.servers
      await topics.make(`${prefix}.order`)
      const stop = await start(stage, prefix)
      let perSecond = 0
      const cpu = await loadAndWait(stage, async () => {
        perSecond = await topics.rate(`${prefix}.order`, stage.events)
      })
      await stop()
      const figures = { perSecond, ...cpu }
      stage.results.add({ scenario: 'kafka', contender: name, round: stage.round, figures })
    }
  },
  bars: (results) =>
    bar(
      'Kafka, log stream against the best of Debezium, events a second',
      results.ratioToBest('perSecond', 'kafka', LOG, DEBEZIUM_WAYS),
      'at least',
      1.5,
    ),
}

const PER_SECOND = 200
const SECONDS = 15

/** How long each of the paced events took, in milliseconds, from the publishing call to where it arrives. */
async function latenciesOf(
  { database, events }: Stage,
  listen: (onEvent: (payload: BenchPayload | null) => void) => Promise<() => Promise<void>>,
): Promise<Figures> {
  const tookMs: number[] = []
  const stop = await listen((payload) => {
    if (payload?.sentAt !== undefined) tookMs.push((nowMicros() - payload.sentAt) / 1_000)
  })
  const outbox = benchOutbox(database.pool)
  const publish = (index: number): Promise<unknown> =>
    outbox.inTransaction(database.pool, (tx) =>
      outbox.publish(tx, 'OrderPlaced', {
        aggregateId: index % 1_000,
        payload: { ...payloadOf(index), sentAt: nowMicros() },
      }),
    )
  const warmUp = PER_SECOND
  await pace(warmUp, PER_SECOND, publish)
  await until(() => tookMs.length >= warmUp)
  tookMs.length = 0
  const count = Math.round(Math.min(1, events / 200_000) * SECONDS * PER_SECOND)
  await pace(count, PER_SECOND, publish)
  await until(() => tookMs.length >= count)
  await stop()
  return { p50Ms: percentile(tookMs, 0.5), p99Ms: percentile(tookMs, 0.99) }
}

const noOpLatency: StreamScenario = {
  name: 'no-op-latency',
  run: async (stage) => {
    for (const { name, start } of turned(NO_OP_WAYS, stage.round)) {
      if (name === BARE) continue
      stage.progress(`no-op latency: ${name}`)
      await clear(stage)
      const figures = await latenciesOf(stage, (onEvent) => start(stage, onEvent))
      stage.results.add({ scenario: 'no-op-latency', contender: name, round: stage.round, figures })
    }
  },
  bars: () => [],
}

const kafkaLatency: StreamScenario = {
  name: 'kafka-latency',
  run: async (stage) => {
    const { servers } = stage
    if (servers === null) return
    for (const [index, { name, start }] of turned(KAFKA_WAYS, stage.round).entries()) {
      stage.progress(`kafka latency: ${name}`)
      await clear(stage)
      const prefix = `latency-${stage.round}-${index}`
      await servers.topics.make(`${prefix}.order`)
      const stop = await start(stage, prefix)
      const figures = await latenciesOf(stage, async (onEvent) => {
        const consumer = await servers.topics.follow(`${prefix}.order`, onEvent)
        return () => consumer.disconnect()
      })
      await stop()
      stage.results.add({ scenario: 'kafka-latency', contender: name, round: stage.round, figures })
    }
  },
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

/** Everything that `npm run bench -- stream` measures. */
export const STREAM_SCENARIOS: readonly StreamScenario[] = [
  noOp,
  kafkaThroughput,
  noOpLatency,
  kafkaLatency,
  memory,
]
