import { dropSchemas, settleDown } from '../support/clean-up.ts'
import { prepareSchema } from '../support/commitpost.ts'
import type { ContenderSettings, LatencyReport, LatencyTask } from '../support/protocol.ts'
import { type Bar, bar, type Results } from '../support/results.ts'
import { FULL_EVENTS, type Scenario, type Session } from '../support/scenario.ts'
import { runToReport, startProgram } from '../support/start-program.ts'
import { percentile } from '../support/statistics.ts'
import { turned } from '../support/turned.ts'

interface LatencyContender {
  readonly name: string
  readonly program: 'commitpost' | 'graphile-worker'
  readonly settings: ContenderSettings
}

const OURS: LatencyContender = { name: 'commitpost', program: 'commitpost', settings: {} }
const PEERS: readonly LatencyContender[] = [
  {
    name: 'graphile-worker, 10 jobs',
    program: 'graphile-worker',
    settings: { concurrentJobs: 10, transaction: true },
  },
  {
    name: 'graphile-worker localQueue 500, 24 jobs',
    program: 'graphile-worker',
    settings: { localQueue: 500, concurrentJobs: 24, transaction: true },
  },
]
// For information: one statement instead of three, and no transaction that anything else could be part of.
const WITHOUT_TRANSACTION: LatencyContender = {
  name: 'graphile-worker, 10 jobs, added outside a transaction',
  program: 'graphile-worker',
  settings: { concurrentJobs: 10 },
}
const CONTENDERS: readonly LatencyContender[] = [OURS, ...PEERS, WITHOUT_TRANSACTION]
const PACE = { perSecond: 200, warmUpSeconds: 5, seconds: 10 } as const

/** From the call that publishes in one process to the handler in another, at 200 events a second. */
export const latencyScenario: Scenario = {
  name: 'latency',
  contenders: CONTENDERS.map(({ name }) => name),
  method: { contenders: CONTENDERS, ...PACE },
  run: async (session) => {
    for (const contender of turned(CONTENDERS, session.round)) {
      if (session.includes(contender.name)) await measureLatency(session, contender)
    }
  },
  bars: (results) => [...barOf(results, 'p50Ms'), ...barOf(results, 'p99Ms')],
}

function barOf(results: Results, figure: string): readonly Bar[] {
  const peers = PEERS.map(({ name }) => results.median('latency', name, figure)).filter(
    (value) => value !== undefined,
  )
  const own = results.median('latency', OURS.name, figure)
  if (own === undefined || peers.length === 0) return []
  return bar(
    `latency at 200/s, ${figure.slice(0, 3)}, against graphile-worker`,
    own / Math.min(...peers),
    'at most',
    1,
  )
}

async function measureLatency(
  session: Session,
  { name, program, settings }: LatencyContender,
): Promise<void> {
  const { database } = session
  const { perSecond, warmUpSeconds } = PACE
  const seconds = Math.max(1, PACE.seconds * (session.events / FULL_EVENTS))
  const events = Math.round(perSecond * seconds)
  const task = { url: database.url, warmUp: perSecond * warmUpSeconds, events, perSecond, settings }
  session.progress(`latency: ${name}`)
  await dropSchemas(database)
  if (program === 'commitpost') {
    await prepareSchema(database.pool, { count: 1, order: 'none', batchSize: 500, concurrency: 10 })
  } else {
    await runToReport<null>(program, { url: database.url, step: 'load', events: 0, settings })
  }
  await settleDown(database)
  const [{ latencies }, sending] = await runBoth(`latency-${program}`, task)
  if (latencies.length !== events) throw new Error(`${latencies.length} of ${events} events arrived`)
  const figures = {
    p50Ms: percentile(latencies, 0.5) / 1_000,
    p95Ms: percentile(latencies, 0.95) / 1_000,
    p99Ms: percentile(latencies, 0.99) / 1_000,
    largestMs: percentile(latencies, 1) / 1_000,
    // The part of it that the publishing transaction takes.
    sendP50Ms: percentile(sending.latencies, 0.5) / 1_000,
    sendP99Ms: percentile(sending.latencies, 0.99) / 1_000,
    sendLargestMs: percentile(sending.latencies, 1) / 1_000,
  }
  session.results.add({ scenario: 'latency', contender: name, round: session.round, figures })
}

async function runBoth(
  program: string,
  task: Omit<LatencyTask, 'role'>,
): Promise<readonly [LatencyReport, LatencyReport]> {
  const worker = startProgram<LatencyReport>(program, { ...task, role: 'worker' })
  const publisher = startProgram<LatencyReport>(program, { ...task, role: 'publisher' })
  await Promise.all([worker.ready, publisher.ready])
  worker.tell({ type: 'go' })
  publisher.tell({ type: 'go' })
  return await Promise.all([worker.report, publisher.report])
}
