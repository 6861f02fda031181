import type { Catalogue } from '../event/catalogue.ts'
import type { Meter } from '../observe/meter.ts'
import { CONTENT_TYPE, expose } from '../observe/metrics/exposition.ts'
import { boundedLabels } from '../observe/metrics/labels.ts'
import { WorkerMetrics } from '../observe/metrics/worker-metrics.ts'
import { type Clock, systemClock } from '../runtime/clock.ts'
import {
  isRecord,
  methodsProblem,
  recordProblem,
  refuseProblems,
  shown,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import type { GaugeStore } from '../store/gauge-store.ts'
import { GaugeCollector } from './gauge-collector.ts'
import { gaugeFamilies } from './gauge-families.ts'
import { DEFAULT_PREFIX, prefixProblem } from './metric-prefix.ts'

/** How metrics are named, and what reading the tables for them may cost. */
export interface PrometheusMetricsOptions {
  /** Whose tables the gauges are about: `postgresStore({ pool })`. */
  readonly store: GaugeStore
  /**
   * What every name begins with: `everbit_outbox` gives `everbit_outbox_pending`.
   * @default 'commitpost'
   */
  readonly prefix?: string
  /**
   * The catalogue: each of its streams has its series from the beginning, and each of its types its own. Of streams,
   * types and subscriptions that it does not name, the first hundred have; the others are counted as `other`.
   * @default none
   */
  readonly events?: Pick<Catalogue, 'events'>
  /**
   * How far deliveries and dead letters are counted, for each subscription and state: more are said to be this many.
   * @default 5_000
   */
  readonly countLimit?: number
  /**
   * How long a reading of the tables is good for, in milliseconds. A slow one is good for ten times as long as it took.
   * @default 5_000
   */
  readonly cacheMs?: number
  /**
   * How long the database may take for a statement, and a scrape wait for it, in milliseconds.
   * @default 2_000
   */
  readonly timeoutMs?: number
  /** Time, for tests. */
  readonly clock?: Clock
}

/** Metrics for Prometheus. Given to `createOutbox`, they also count what its workers and publishers do. */
export interface PrometheusMetrics extends Meter {
  /** The content type of what `render` returns. */
  readonly contentType: string
  /** All metrics as text, for the answer to a scrape. Never rejects: without a database there are no gauges. */
  render(): Promise<string>
}

/** Makes metrics. Reads nothing and opens no connection until they are rendered. */
export function prometheusMetrics(options: PrometheusMetricsOptions): PrometheusMetrics {
  refuseProblems('prometheusMetrics', metricsProblems(options))
  const { store, prefix = DEFAULT_PREFIX, events, clock = systemClock } = options
  const { countLimit = 5_000, cacheMs = 5_000, timeoutMs = 2_000 } = options
  const labels = boundedLabels(events)
  const workers = new WorkerMetrics(labels, clock)
  const collector = new GaugeCollector({ store, clock, cacheMs, limits: { countLimit, timeoutMs } })
  return {
    contentType: CONTENT_TYPE,
    observer: workers.observer,
    published: workers.published,
    render: async () =>
      expose(prefix, [...gaugeFamilies(await collector.collect(), labels), ...workers.families()]),
  }
}

const OPTION_NAMES: readonly (keyof PrometheusMetricsOptions)[] = [
  'store',
  'prefix',
  'events',
  'countLimit',
  'cacheMs',
  'timeoutMs',
  'clock',
]

function metricsProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the argument', options)]
  const { store, events } = options
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    typeof property(store, 'readGauges') === 'function'
      ? null
      : `store must be a store, such as postgresStore({ pool }), but is ${shown(store)}`,
    events === undefined || Array.isArray(property(events, 'events'))
      ? null
      : `events must be a catalogue: defineEvents({ … }), but is ${shown(events)}`,
    prefixProblem('prefix', options['prefix']),
    wholeNumberProblem('countLimit', options['countLimit'], 1, 1_000_000),
    wholeNumberProblem('cacheMs', options['cacheMs'], 0, 3_600_000),
    wholeNumberProblem('timeoutMs', options['timeoutMs'], 1, 60_000),
    methodsProblem('clock', options['clock'], ['now', 'monotonicMs', 'sleep']),
  ]
}
