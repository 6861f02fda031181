// Drains in which Commitpost is compared with itself: with as many deliveries, so that starting weighs the same.
import { drainsOf } from '../support/drain-scenario.ts'
import type { DrainContender } from '../support/measure-drain.ts'
import { bar } from '../support/results.ts'
import { ORDERED, UNORDERED } from './drain.ts'

const HOT_KEYS: DrainContender = { ...ORDERED, name: 'commitpost ordered, 10 keys', keys: 10, share: 5 }
const MANY_KEYS: DrainContender = { ...HOT_KEYS, name: 'commitpost ordered, 100,000 keys', keys: 100_000 }

/** Long queues of few keys: what order costs at its worst. */
export const hotKeysScenario = drainsOf('hot-keys', [HOT_KEYS, MANY_KEYS], (results) =>
  bar(
    'drain, ordered, 1M backlog, 10 keys against 100,000',
    results.ratio('perSecond', ['hot-keys', HOT_KEYS.name], ['hot-keys', MANY_KEYS.name]),
    'at least',
    0.8,
  ),
)

const FAN_OUT: DrainContender = { ...UNORDERED, name: 'commitpost, 3 subscriptions', subscriptions: 3 }
const SINGLE: DrainContender = { ...UNORDERED, name: 'commitpost, 1 subscription', share: 3 }

/** Three subscriptions on every event, and one on three times as many; the rate counts deliveries. */
export const fanOutScenario = drainsOf('fan-out', [FAN_OUT, SINGLE], (results) =>
  bar(
    'three subscriptions, deliveries, against as many of one',
    results.ratio('perSecond', ['fan-out', FAN_OUT.name], ['fan-out', SINGLE.name]),
    'at least',
    0.8,
  ),
)

/** Large enough that to start four processes, and have their code compiled, is a small part of it. */
const ONE = { ...UNORDERED, name: 'commitpost, 1 process', processes: 1, share: 3 }
const SEVERAL = [
  { ...ONE, name: 'commitpost, 2 processes', processes: 2 },
  { ...ONE, name: 'commitpost, 4 processes', processes: 4 },
] as const

/** The same backlog for one, two and four worker processes. */
export const scalingScenario = drainsOf('scaling', [ONE, ...SEVERAL], (results) =>
  SEVERAL.flatMap(({ name, processes }) =>
    bar(
      `${processes} worker processes against one`,
      results.ratio('perSecond', ['scaling', name], ['scaling', ONE.name]),
      'at least',
      0.9,
    ),
  ),
)

const BACKLOGS = [
  { ...UNORDERED, name: 'commitpost, 1k backlog', share: 1 / 200 },
  { ...UNORDERED, name: 'commitpost, 10k backlog', share: 1 / 20 },
  { ...UNORDERED, name: 'commitpost, 100k backlog', share: 1 / 2 },
  { ...UNORDERED, name: 'commitpost, 1M backlog', share: 5 },
] as const

const [, , MIDDLE, LARGEST] = BACKLOGS

/** How the length of the backlog changes the rate, and what the longest one does to the worker's memory. */
export const backlogScenario = drainsOf('backlog', BACKLOGS, (results) => [
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
])
