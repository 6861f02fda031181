import { describe, expect, test } from 'vitest'
import { defineEvents } from '../../src/event/define-events.ts'
import { BoundedLabel } from '../../src/observe/metrics/bounded-label.ts'
import { CONTENT_TYPE, expose } from '../../src/observe/metrics/exposition.ts'
import { Counter, Histogram } from '../../src/observe/metrics/instruments.ts'
import { boundedLabels } from '../../src/observe/metrics/labels.ts'
import { WorkerMetrics } from '../../src/observe/metrics/worker-metrics.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { someEvent } from '../dispatch/support.ts'
import { newEvent } from '../store/postgres/fixtures.ts'
import { type Exposition, parseExposition } from '../support/exposition.ts'

const CREATED = new Date('2026-01-01T00:00:00.000Z')
const about = { subscription: 'mailer', event: someEvent({ createdAt: CREATED }), attempt: 2, maxAttempts: 5 }
const failure = { code: 'ECONNRESET', message: 'socket hang up' }
const STREAM = 'stream="shop.order.event"'

function setup(): {
  readonly metrics: WorkerMetrics
  readonly clock: ManualClock
  readonly read: () => Exposition
} {
  const clock = new ManualClock(CREATED)
  const metrics = new WorkerMetrics(boundedLabels(undefined), clock)
  return { metrics, clock, read: () => parseExposition(expose('shop', metrics.families())) }
}

describe('the text format', () => {
  test('has help, type and samples, with everything escaped that could end a line or a value', () => {
    const counter = new Counter({ name: 'things_total', help: 'One \\ two\nthree.', labels: ['a', 'b'] })
    counter.add(1, 'plain', '한글')
    counter.add(2.5, 'quote " slash \\', 'line\nbreak')
    counter.add(1, 'plain', '한글')
    expect(expose('shop', [counter.family()])).toBe(
      [
        '# HELP shop_things_total One \\\\ two\\nthree.',
        '# TYPE shop_things_total counter',
        'shop_things_total{a="plain",b="한글"} 2',
        'shop_things_total{a="quote \\" slash \\\\",b="line\\nbreak"} 2.5',
        '',
      ].join('\n'),
    )
    expect(CONTENT_TYPE).toBe('text/plain; version=0.0.4; charset=utf-8')
  })

  test('has the buckets of a histogram as sums of all below', () => {
    const histogram = new Histogram({ name: 'wait_seconds', help: 'x', labels: [] }, [0.1, 1])
    for (const value of [0.05, 0.1, 0.5, 30]) histogram.observe(histogram.at(), value)
    expect([...parseExposition(expose('shop', [histogram.family()])).samples]).toEqual([
      ['shop_wait_seconds_bucket{le="0.1"}', 2],
      ['shop_wait_seconds_bucket{le="1"}', 3],
      ['shop_wait_seconds_bucket{le="+Inf"}', 4],
      ['shop_wait_seconds_sum', 30.65],
      ['shop_wait_seconds_count', 4],
    ])
  })
})

describe('labels', () => {
  test('take the values that are known, so many others, and "other" for the rest', () => {
    const label = new BoundedLabel(['known'], 2)
    expect(['a', 'b', 'c', 'known', 'a', 'd'].map((value) => label.of(value))).toEqual([
      'a',
      'b',
      'other',
      'known',
      'a',
      'other',
    ])
    expect(label.values).toEqual(['known', 'a', 'b'])
  })

  test('know the streams and stored types of the catalogue', () => {
    const events = defineEvents({
      LedgerPosted: { stream: 'ledger', aggregate: 'transaction', storedAs: 'LEDGER_POSTED' },
    })
    const labels = boundedLabels(events)
    expect(labels.stream.values).toEqual(['ledger'])
    expect(labels.eventType.values).toEqual(['LEDGER_POSTED'])
  })

  test('do not grow with the types that a program invents', () => {
    const { metrics, read } = setup()
    for (let n = 0; n < 1_000; n += 1) {
      metrics.published([newEvent({ stream: `s${n}`, type: `T${n}` })])
      metrics.observer({ kind: 'handled', durationMs: 1, ...about, event: someEvent({ type: `T${n}` }) })
    }
    const { samples } = read()
    expect([...samples.keys()].filter((key) => key.startsWith('shop_published_total'))).toHaveLength(101)
    expect(samples.get('shop_published_total{stream="other",eventType="other"}')).toBe(900)
    expect(
      samples.get(`shop_handler_duration_seconds_count{${STREAM},eventType="other"}`),
    ).toBeGreaterThanOrEqual(900)
  })
})

describe('what workers tell', () => {
  test('E14 L8 is counted by stream and result, with the duration, the lag and the attempts', async () => {
    const { metrics, clock, read } = setup()
    await clock.advance(2_000)
    metrics.observer({ kind: 'handled', durationMs: 250, ...about })
    metrics.observer({ kind: 'retried', failure, delayMs: 1, durationMs: 750, ...about, attempt: 1 })
    metrics.observer({ kind: 'dead', failure, durationMs: 1_000, ...about, attempt: 5 })
    const { samples } = read()
    expect(samples.get(`shop_processed_total{${STREAM},result="done"}`)).toBe(1)
    expect(samples.get(`shop_processed_total{${STREAM},result="retry"}`)).toBe(1)
    expect(samples.get(`shop_processed_total{${STREAM},result="dead"}`)).toBe(1)
    expect(samples.get(`shop_handler_duration_seconds_sum{${STREAM},eventType="OrderPlaced"}`)).toBe(2)
    expect(samples.get(`shop_handler_duration_seconds_count{${STREAM},eventType="OrderPlaced"}`)).toBe(3)
    expect(samples.get(`shop_delivery_lag_seconds_sum{${STREAM}}`)).toBe(2)
    expect(samples.get(`shop_delivery_lag_seconds_count{${STREAM}}`)).toBe(1)
    expect(samples.get(`shop_delivery_attempts_sum{${STREAM}}`)).toBe(7)
    expect(samples.get(`shop_delivery_attempts_count{${STREAM}}`)).toBe(2)
    expect(samples.get(`shop_dead_letters_total{${STREAM},eventType="OrderPlaced"}`)).toBe(1)
  })

  test('is counted where it is trouble: lost leases, late handlers, recoveries, errors', () => {
    const { metrics, read } = setup()
    metrics.observer({ kind: 'leaseLost', ...about })
    metrics.observer({ kind: 'finishedLate', after: 'timeout', succeeded: true, durationMs: 9, ...about })
    metrics.observer({ kind: 'released', why: 'postponed', delayMs: 9, ...about })
    metrics.observer({ kind: 'recovered', subscription: 'mailer', count: 3, suspects: 0, dead: 0 })
    metrics.observer({ kind: 'unmatched', event: someEvent() })
    metrics.observer({ kind: 'error', during: 'claim', error: new Error('gone'), subscription: 'mailer' })
    metrics.observer({
      kind: 'claimed',
      subscription: 'mailer',
      count: 30,
      suspects: 0,
      durationMs: 4,
      deliveries: [],
    })
    const { samples } = read()
    expect(samples.get(`shop_lease_losses_total{${STREAM}}`)).toBe(1)
    expect(samples.get(`shop_finished_late_total{${STREAM},after="timeout"}`)).toBe(1)
    expect(samples.get(`shop_released_total{${STREAM},why="postponed"}`)).toBe(1)
    expect(samples.get('shop_recovered_total{subscription="mailer"}')).toBe(3)
    expect(samples.get(`shop_unmatched_total{${STREAM}}`)).toBe(1)
    expect(samples.get('shop_worker_errors_total{during="claim"}')).toBe(1)
    expect(samples.get('shop_claim_size_sum{subscription="mailer"}')).toBe(30)
    expect(samples.get('shop_claim_duration_seconds_sum{subscription="mailer"}')).toBe(0.004)
  })

  test('says how many workers run, and a clock behind that of the database makes no lag negative', () => {
    const { metrics, read } = setup()
    metrics.observer({ kind: 'started', workerId: 'a', subscriptions: [] })
    metrics.observer({ kind: 'started', workerId: 'b', subscriptions: [] })
    metrics.observer({ kind: 'stopped', workerId: 'a', released: 0 })
    const event = someEvent({ createdAt: new Date(CREATED.getTime() + 5_000) })
    metrics.observer({ kind: 'handled', durationMs: 1, ...about, event })
    const { samples } = read()
    expect(samples.get('shop_workers_running')).toBe(1)
    expect(samples.get(`shop_delivery_lag_seconds_sum{${STREAM}}`)).toBe(0)
  })
})
