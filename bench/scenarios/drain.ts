import { drainsOf } from '../support/drain-scenario.ts'
import type { DrainContender } from '../support/measure-drain.ts'
import { type Bar, bar, type Results } from '../support/results.ts'

const OURS = { batchSize: 1_000, concurrency: 100 }

/** Commitpost without order, as it takes part in the drains. */
export const UNORDERED: DrainContender = {
  name: 'commitpost unordered',
  program: 'commitpost',
  settings: { ...OURS, order: 'none' },
}

/** Commitpost in order by 100,000 keys. */
export const ORDERED: DrainContender = {
  name: 'commitpost ordered',
  program: 'commitpost',
  settings: { ...OURS, order: 'aggregate' },
}

const PEERS: readonly DrainContender[] = [
  graphile(500, 24),
  graphile(1_000, 100),
  graphile(5_000, 1_000),
  { name: 'pg-boss fetch(1000) and complete, 2 loops', program: 'pg-boss', settings: { mode: 'fetch' } },
  { name: 'pg-boss work(), batches of 1000', program: 'pg-boss', settings: { mode: 'work' } },
]

const CONTENDERS: readonly DrainContender[] = [UNORDERED, ...PEERS, ORDERED]

/** A backlog worked off by one process with a handler that does nothing. */
export const drainScenario = drainsOf('drain', CONTENDERS, (results) => [
  ...barAgainstPeers(results, 'drain, unordered, against the best peer', UNORDERED.name, 1.3),
  ...barAgainstPeers(results, 'drain, ordered by 100,000 keys, against the best peer', ORDERED.name, 1.2),
])

function graphile(localQueue: number, concurrentJobs: number): DrainContender {
  return {
    name: `graphile-worker localQueue ${localQueue}, ${concurrentJobs} jobs`,
    program: 'graphile-worker',
    settings: { localQueue, concurrentJobs },
  }
}

function barAgainstPeers(results: Results, name: string, ours: string, limit: number): readonly Bar[] {
  return bar(name, results.ratioToBest('perSecond', 'drain', ours, PEERS), 'at least', limit)
}
