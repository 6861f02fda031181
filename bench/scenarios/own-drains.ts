// Drains in which Commitpost is compared with itself.
import { type DrainContender, measureDrain } from '../support/measure-drain.ts'
import { bar } from '../support/results.ts'
import type { Scenario } from '../support/scenario.ts'
import { ORDERED, UNORDERED } from './drain.ts'

const HOT_KEYS: DrainContender = { ...ORDERED, name: 'commitpost ordered, 10 keys', keys: 10 }

/** Long queues of few keys: what order costs at its worst. */
export const hotKeysScenario: Scenario = {
  name: 'hot-keys',
  contenders: [HOT_KEYS.name],
  run: (session) => measureDrain(session, 'hot-keys', HOT_KEYS, session.events * 5),
  bars: (results) =>
    bar(
      'drain, ordered, 10 keys, 1M backlog, against 100,000 keys',
      results.ratio('perSecond', ['hot-keys', HOT_KEYS.name], ['drain', ORDERED.name]),
      'at least',
      0.8,
    ),
}

const FAN_OUT: DrainContender = { ...UNORDERED, name: 'commitpost, 3 subscriptions', subscriptions: 3 }

/** Three subscriptions on every event; the rate counts deliveries. */
export const fanOutScenario: Scenario = {
  name: 'fan-out',
  contenders: [FAN_OUT.name],
  run: (session) => measureDrain(session, 'fan-out', FAN_OUT, session.events),
  bars: (results) =>
    bar(
      'three subscriptions, deliveries, against one',
      results.ratio('perSecond', ['fan-out', FAN_OUT.name], ['drain', UNORDERED.name]),
      'at least',
      0.8,
    ),
}

const PROCESSES = [1, 2, 4] as const

/** The name of the contender with so many processes. */
export function processesName(processes: number): string {
  return `commitpost, ${processes} ${processes === 1 ? 'process' : 'processes'}`
}

/** Large enough that to start four processes, and have their code compiled, is a small part of it. */
const SCALING_SHARE = 3

/** The same backlog for one, two and four worker processes. */
export const scalingScenario: Scenario = {
  name: 'scaling',
  contenders: PROCESSES.map(processesName),
  run: async (session) => {
    for (const processes of PROCESSES) {
      const contender = { ...UNORDERED, name: processesName(processes), processes }
      await measureDrain(session, 'scaling', contender, session.events * SCALING_SHARE)
    }
  },
  bars: (results) =>
    [2, 4].flatMap((processes) =>
      bar(
        `${processes} worker processes against one`,
        results.ratio('perSecond', ['scaling', processesName(processes)], ['scaling', processesName(1)]),
        'at least',
        0.9,
      ),
    ),
}

/** Backlogs in proportion to that of the drains, whose default is 200,000. */
export const BACKLOGS = [
  { name: 'commitpost, 1k backlog', share: 1 / 200 },
  { name: 'commitpost, 10k backlog', share: 1 / 20 },
  { name: 'commitpost, 100k backlog', share: 1 / 2 },
  { name: 'commitpost, 1M backlog', share: 5 },
] as const

const [, , MIDDLE, LARGEST] = BACKLOGS

/** How the length of the backlog changes the rate, and what the longest one does to the worker's memory. */
export const backlogScenario: Scenario = {
  name: 'backlog',
  contenders: BACKLOGS.map(({ name }) => name),
  run: async (session) => {
    for (const { name, share } of BACKLOGS) {
      await measureDrain(session, 'backlog', { ...UNORDERED, name }, Math.round(session.events * share))
    }
  },
  bars: (results) => [
    ...bar(
      '1M backlog against 100k',
      results.ratio('perSecond', ['backlog', LARGEST.name], ['backlog', MIDDLE.name]),
      'at least',
      0.9,
    ),
    ...bar(
      'largest resident memory of a worker with a 1M backlog, MB',
      results.median('backlog', LARGEST.name, 'maxRssMegabytes'),
      'under',
      150,
    ),
  ],
}
