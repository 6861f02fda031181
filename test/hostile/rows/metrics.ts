import { createOutbox, prometheusMetrics } from '../../../src/index.ts'
import { openTelemetry } from '../../../src/observe/otel/index.ts'
import { parseExposition } from '../../support/exposition.ts'
import { borne, cli, type Group, invalid, type Refusal, wrong } from '../row.ts'
import { events } from '../scene.ts'

const metricsOf = (does: string, says: string, options: object | null | undefined): Refusal =>
  invalid(`prometheusMetrics(${does})`, says, () => prometheusMetrics(wrong(options)))

/** Good options with one that is not. */
const metricsWith = (does: string, says: string, option: object): Refusal =>
  invalid(`prometheusMetrics({ …, ${does} })`, says, ({ store }) =>
    prometheusMetrics(wrong({ store, ...option })),
  )

const outboxWith = (does: string, says: string, option: object): Refusal =>
  invalid(`createOutbox({ …, ${does} })`, says, ({ store }) =>
    createOutbox(wrong({ store, events, ...option })),
  )

const NO_PREFIX = 'prefix must be 2 to 64 letters, digits, underscores or colons'

export const metrics: Group = {
  title: 'Metrics and traces',
  rows: [
    metricsOf('', 'the argument must be an object, but is undefined', undefined),
    metricsOf('{}', 'store must be a store, such as postgresStore({ pool }), but is undefined', {}),
    metricsWith("prefix: ''", NO_PREFIX, { prefix: '' }),
    metricsWith("prefix: '9lives'", NO_PREFIX, { prefix: '9lives' }),
    metricsWith("prefix: 'outbox_'", NO_PREFIX, { prefix: 'outbox_' }),
    metricsWith('prefix: \'a{b="c"}\'', NO_PREFIX, { prefix: 'a{b="c"}' }),
    metricsWith('events: {}', 'events must be a catalogue: defineEvents({ … })', { events: {} }),
    metricsWith('countLimit: 0', 'countLimit must be a whole number from 1 to 1000000', { countLimit: 0 }),
    metricsWith('cacheMs: -1', 'cacheMs must be a whole number from 0', { cacheMs: -1 }),
    metricsWith("timeoutMs: '2s'", 'timeoutMs must be a whole number from 1', { timeoutMs: '2s' }),
    metricsWith('clock: Date', 'clock must have the methods now, monotonicMs, sleep', { clock: Date }),
    metricsWith('cacheMS: 1', 'did you mean "cacheMs"?', { cacheMS: 1 }),
    outboxWith('metrics: true', 'metrics must have the methods observer, published', { metrics: true }),
    outboxWith('tracing: {}', 'tracing must have the methods headers, publishing, handling', { tracing: {} }),
    invalid('openTelemetry(null)', 'the options must be an object, but is null', () =>
      openTelemetry(wrong(null)),
    ),
    invalid('openTelemetry({ tracer: {} })', 'tracer must have the methods startSpan', () =>
      openTelemetry(wrong({ tracer: {} })),
    ),
    borne(
      'a scrape of a database that refuses everything',
      'the metrics tell nothing of the tables, and say so by collection_success 0',
      [0, ['collection_success', 'collection_duration_seconds', 'workers_running']],
      async () => {
        const store = { readGauges: () => Promise.reject(new Error('connection refused')) }
        const { samples, types } = parseExposition(await prometheusMetrics({ store }).render())
        const series = [...samples.keys()].filter((name) => types.get(name.replace(/\{.*/, '')) === 'gauge')
        const names = series.map((name) => name.replace('commitpost_', ''))
        return [samples.get('commitpost_collection_success'), names]
      },
    ),
    cli(['metrics', '--prefix', 'a-b'], 2, 'USAGE', '--prefix must be 2 to 64 letters'),
    cli(['metrics', '--port', '-1'], 2, 'USAGE', '--port must be a whole number from 0 to 65535'),
  ],
}
