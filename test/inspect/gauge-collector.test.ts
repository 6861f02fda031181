import { describe, expect, test } from 'vitest'
import { type Collection, GaugeCollector } from '../../src/inspect/gauge-collector.ts'
import { prometheusMetrics } from '../../src/inspect/prometheus-metrics.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import type { GaugeStore, Gauges } from '../../src/store/gauge-store.ts'
import { parseExposition } from '../support/exposition.ts'

const GAUGES: Gauges = {
  backlog: [
    { subscription: 'a', stream: 'order', pending: 3, held: 1, processing: 2, oldestPendingSeconds: 9 },
    { subscription: 'b', stream: 'order', pending: 4, held: 0, processing: 0, oldestPendingSeconds: 5 },
    { subscription: 'b', stream: 'payment', pending: 0, held: 0, processing: 1, oldestPendingSeconds: null },
  ],
  deadLetters: [{ subscription: 'a', stream: 'order', eventType: 'OrderPlaced', count: 2 }],
  subscriptions: [
    { subscription: 'a', state: 'active', paused: true, workers: 2 },
    { subscription: 'b', state: 'joining', paused: false, workers: 0 },
  ],
  tables: [{ table: 'outbox_event', bytes: 8_192, estimatedRows: null, removedRows: 7 }],
  oldestEventSeconds: 60,
  capped: false,
}
const LIMITS = { countLimit: 100, timeoutMs: 2_000 }

/** A database that answers when it is told to. */
class SlowStore implements GaugeStore {
  readonly answers: ((gauges: Gauges | Error) => void)[] = []

  readGauges(): Promise<Gauges> {
    return new Promise((resolve, reject) => {
      this.answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer)))
    })
  }
}

function setup(): {
  readonly store: SlowStore
  readonly clock: ManualClock
  readonly collector: GaugeCollector
} {
  const store = new SlowStore()
  const clock = new ManualClock()
  return { store, clock, collector: new GaugeCollector({ store, clock, limits: LIMITS, cacheMs: 5_000 }) }
}

const read: Collection = { gauges: GAUGES, durationMs: 100 }

describe('the gauges of the tables', () => {
  test('are read once for all who ask at the same time, and kept for the time they are good for', async () => {
    const { store, clock, collector } = setup()
    const asked = [collector.collect(), collector.collect(), collector.collect()]
    await clock.advance(100)
    store.answers[0]?.(GAUGES)
    expect(await Promise.all(asked)).toEqual([read, read, read])
    await clock.advance(4_999)
    expect(await collector.collect()).toEqual(read)
    expect(store.answers).toHaveLength(1)

    await clock.advance(1)
    const next = collector.collect()
    store.answers[1]?.(GAUGES)
    expect(await next).toEqual({ gauges: GAUGES, durationMs: 0 })
  })

  test('are not asked of a slow database again before ten times as long as it took', async () => {
    const { store, clock, collector } = setup()
    const asked = collector.collect()
    await clock.advance(1_900)
    store.answers[0]?.(GAUGES)
    await asked
    await clock.advance(18_999)
    await collector.collect()
    expect(store.answers).toHaveLength(1)
    await clock.advance(1)
    void collector.collect()
    expect(store.answers).toHaveLength(2)
  })

  test('are given up after the time-out, while the one reading goes on and is used when it comes', async () => {
    const { store, clock, collector } = setup()
    const asked = collector.collect()
    await clock.advance(2_000)
    expect(await asked).toEqual({ gauges: null, durationMs: 2_000 })
    const again = collector.collect()
    expect(store.answers).toHaveLength(1)
    store.answers[0]?.(GAUGES)
    expect((await again).gauges).toEqual(GAUGES)
  })

  test('leave nothing asleep behind, and a database that refuses is left alone as well', async () => {
    const { store, clock, collector } = setup()
    const asked = collector.collect()
    store.answers[0]?.(new Error('connection refused'))
    expect(await asked).toEqual({ gauges: null, durationMs: 0 })
    expect(clock.sleeping).toBe(0)
    await collector.collect()
    expect(store.answers).toHaveLength(1)
  })
})

describe('metrics', () => {
  test('add up what subscriptions have of a stream, with the oldest of them, and a zero where nothing waits', async () => {
    const metrics = prometheusMetrics({ store: { readGauges: async () => GAUGES }, prefix: 'shop' })
    const { samples } = parseExposition(await metrics.render())
    expect(samples.get('shop_pending{stream="order"}')).toBe(7)
    expect(samples.get('shop_pending{stream="payment"}')).toBe(0)
    expect(samples.get('shop_processing{stream="payment"}')).toBe(1)
    expect(samples.get('shop_oldest_pending_seconds{stream="order"}')).toBe(9)
    expect(samples.get('shop_oldest_pending_seconds{stream="payment"}')).toBe(0)
    expect(samples.get('shop_dead{stream="order"}')).toBe(2)
    expect(samples.get('shop_dead{stream="payment"}')).toBe(0)
    expect(samples.get('shop_dead_letters{stream="order",eventType="OrderPlaced"}')).toBe(2)
    expect(samples.get('shop_subscription_pending{subscription="b"}')).toBe(4)
    expect(samples.get('shop_subscription_held{subscription="a"}')).toBe(1)
    expect(samples.get('shop_subscription_dead{subscription="b"}')).toBe(0)
    expect(samples.get('shop_subscription_workers{subscription="a"}')).toBe(2)
    expect(samples.get('shop_subscription_paused{subscription="a"}')).toBe(1)
    expect(samples.get('shop_subscription_joining{subscription="b"}')).toBe(1)
    expect(samples.get('shop_table_removed_rows_total{table="outbox_event"}')).toBe(7)
    expect(samples.has('shop_table_rows{table="outbox_event"}')).toBe(false)
    expect(samples.get('shop_collection_success')).toBe(1)
  })

  test('of a database that cannot be read have no gauges, and say so: an old figure would keep an alarm silent', async () => {
    let isUp = true
    const clock = new ManualClock()
    const readGauges = (): Promise<Gauges> =>
      isUp ? Promise.resolve(GAUGES) : Promise.reject(new Error('connection refused'))
    const metrics = prometheusMetrics({ store: { readGauges }, prefix: 'shop', clock })
    await metrics.render()
    isUp = false
    await clock.advance(5_000)
    const { samples, types } = parseExposition(await metrics.render())
    expect(samples.get('shop_collection_success')).toBe(0)
    expect([...samples.keys()].filter((key) => key.startsWith('shop_pending'))).toEqual([])
    expect(types.get('shop_pending')).toBe('gauge')
    expect(samples.get('shop_workers_running')).toBe(0)
  })
})
