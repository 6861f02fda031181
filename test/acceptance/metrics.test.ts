import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fixed, NonRetryableError, type PrometheusMetrics, prometheusMetrics } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { type Exposition, parseExposition } from '../support/exposition.ts'
import { lapseLeases } from '../support/leases.ts'
import { ATTRIBUTES, type EverbitEvents, everbitEvents, openEverbit, STREAMS } from './everbit-system.ts'
import { eventually, type Signal, type System, signal } from './support.ts'

let system: System<EverbitEvents>
let metrics: PrometheusMetrics
let release: Signal

/** The system first makes its tables; the metrics are about those. */
beforeEach(async () => {
  release = signal()
  system = await openEverbit({
    metrics: {
      observer: (event) => metrics.observer(event),
      published: (events) => metrics.published(events),
    },
  })
  metrics = metricsWithin(60_000)
})
afterEach(async () => {
  release.happen()
  await system[Symbol.asyncDispose]()
})

function metricsWithin(timeoutMs: number): PrometheusMetrics {
  const store = postgresStore({ pool: system.pool, schema: system.schema })
  return prometheusMetrics({ store, events: everbitEvents, prefix: 'everbit_outbox', cacheMs: 0, timeoutMs })
}

const scrape = async (): Promise<Exposition> => parseExposition(await metrics.render())
const TRADE = 'stream="everbit.trade.event"'

/** One handler that succeeds at its second attempt, one that fails for good, one that waits. */
async function runTrade(): Promise<void> {
  const notification = system.outbox.subscription('notification', {
    retry: fixed('1ms'),
    on: {
      OrderAccepted: (_, { attempt }) => {
        if (attempt === 1) throw new Error('no route to host')
      },
      OrderTimedOut: () => {
        throw new NonRetryableError('unknown device')
      },
      OrderFilled: () => release.happened,
    },
  })
  await system.run([notification])
  const order = { aggregateId: 'a', headers: ATTRIBUTES, payload: { identifier: 'a' } } as const
  await system.publish('OrderAccepted', order)
  await system.publish('OrderTimedOut', order)
  await system.publish('OrderFilled', { ...order, payload: { identifier: 'a', volume: '1' } })
  await eventually('one is in hand, one done, one dead', async () => {
    const rows = await system.rows<{ status: string }>('select status from outbox_delivery order by status')
    return rows.map(({ status }) => status).join() === 'DEAD,DONE,PROCESSING'
  })
}

describe('metrics of everbit', () => {
  test('E14 have the names, labels and types of the seed, with the prefix as an option', async () => {
    await runTrade()
    await eventually('the ends are told', async () => {
      const { samples } = await scrape()
      return (
        samples.get(`everbit_outbox_processed_total{${TRADE},result="done"}`) === 1 &&
        samples.get(`everbit_outbox_processed_total{${TRADE},result="dead"}`) === 1
      )
    })
    const { samples, types } = await scrape()
    expect(
      [
        'everbit_outbox_pending',
        'everbit_outbox_processing',
        'everbit_outbox_dead',
        'everbit_outbox_oldest_pending_seconds',
        'everbit_outbox_processed_total',
        'everbit_outbox_handler_duration_seconds',
      ].map((name) => types.get(name)),
    ).toEqual(['gauge', 'gauge', 'gauge', 'gauge', 'counter', 'histogram'])
    for (const stream of STREAMS) {
      expect(samples.get(`everbit_outbox_pending{stream="${stream}"}`)).toBe(0)
      expect(samples.get(`everbit_outbox_oldest_pending_seconds{stream="${stream}"}`)).toBe(0)
      const isTrade = stream === 'everbit.trade.event'
      expect(samples.get(`everbit_outbox_processing{stream="${stream}"}`)).toBe(isTrade ? 1 : 0)
      expect(samples.get(`everbit_outbox_dead{stream="${stream}"}`)).toBe(isTrade ? 1 : 0)
    }
    expect(samples.get(`everbit_outbox_processed_total{${TRADE},result="retry"}`)).toBe(1)
    const duration = 'everbit_outbox_handler_duration_seconds'
    expect(samples.get(`${duration}_count{${TRADE},eventType="OrderAccepted"}`)).toBe(2)
    expect(samples.get(`${duration}_bucket{${TRADE},eventType="OrderAccepted",le="+Inf"}`)).toBe(2)
  })

  test('D8 L8 U9 have dead letters by type, the lag, the attempts and the publishes', async () => {
    await runTrade()
    // One is held up by its handler: it has been on its way for so long at least.
    const [held] = await system.rows<{ seconds: number }>(
      `select extract(epoch from clock_timestamp() - e.created_at)::float8 as seconds
         from outbox_event e where e.event_type = 'OrderFilled'`,
    )
    release.happen()
    await eventually('all ends are told', async () => {
      const { samples } = await scrape()
      return samples.get(`everbit_outbox_processed_total{${TRADE},result="done"}`) === 2
    })
    const { samples } = await scrape()
    expect(samples.get(`everbit_outbox_dead_letters{${TRADE},eventType="OrderTimedOut"}`)).toBe(1)
    expect(samples.get(`everbit_outbox_dead_letters_total{${TRADE},eventType="OrderTimedOut"}`)).toBe(1)
    expect(samples.get(`everbit_outbox_delivery_lag_seconds_count{${TRADE}}`)).toBe(2)
    expect(samples.get(`everbit_outbox_delivery_lag_seconds_sum{${TRADE}}`)).toBeGreaterThan(
      held?.seconds ?? Number.POSITIVE_INFINITY,
    )
    expect(samples.get(`everbit_outbox_delivery_attempts_sum{${TRADE}}`)).toBe(4)
    expect(samples.get(`everbit_outbox_delivery_attempts_count{${TRADE}}`)).toBe(3)
    expect(samples.get(`everbit_outbox_published_total{${TRADE},eventType="OrderFilled"}`)).toBe(1)
    expect(samples.get('everbit_outbox_subscription_workers{subscription="notification"}')).toBe(1)
    expect(samples.get('everbit_outbox_claim_size_sum{subscription="notification"}')).toBe(4)
    expect(samples.get('everbit_outbox_workers_running')).toBe(1)
  })

  test('E14 what waits is counted, with the age of the oldest', async () => {
    const notification = system.outbox.subscription('notification', {
      on: { OrderAccepted: () => undefined },
    })
    await (await system.run([notification])).stop()
    const order = { aggregateId: 'a', headers: ATTRIBUTES, payload: { identifier: 'a' } } as const
    await system.publish('OrderAccepted', order)
    const ageOfOldest = `select extract(epoch from clock_timestamp() - min(created_at))::float8 from outbox_event`
    const least = await system.value<number>(ageOfOldest)
    const { samples } = await scrape()
    expect(samples.get(`everbit_outbox_pending{${TRADE}}`)).toBe(1)
    const age = samples.get(`everbit_outbox_oldest_pending_seconds{${TRADE}}`)
    expect(age).toBeGreaterThanOrEqual(least)
    expect(age).toBeLessThanOrEqual(await system.value<number>(ageOfOldest))
  })

  test('E14 a lease that was lost on the way is counted, once and for its stream', async () => {
    const started = signal()
    const subscribed = (handle: () => Promise<void>) =>
      system.outbox.subscription('notification', { on: { OrderAccepted: handle } })
    const asleep = subscribed(() => {
      started.happen()
      return release.happened
    })
    // Leases long enough that no heartbeat comes between: the lease ends as it would for a process that slept.
    await system.runElsewhere([asleep], { leaseMs: 60_000 })
    const order = { aggregateId: 'a', headers: ATTRIBUTES, payload: { identifier: 'a' } } as const
    const eventId = await system.publish('OrderAccepted', order)
    await started.happened
    const losses = async (): Promise<number | undefined> =>
      (await scrape()).samples.get(`everbit_outbox_lease_losses_total{${TRADE}}`)
    expect((await losses()) ?? 0).toBe(0)
    await lapseLeases(system.pool, await system.value<string>('select worker_id from outbox_lease'))
    await system.runElsewhere([subscribed(async () => {})], { leaseMs: 60_000 })
    await system.untilStatus(eventId, 'DONE')
    release.happen()
    await eventually('the loss is counted', async () => (await losses()) === 1)
    const { samples } = await scrape()
    expect(samples.get(`everbit_outbox_processed_total{${TRADE},result="done"}`)).toBe(1)
  })

  test('E14 a scrape that hangs delays no delivery, and none is left waiting for it', async () => {
    const handled = system.outbox.subscription('notification', { on: { OrderAccepted: () => undefined } })
    await system.run([handled])
    const locker = await system.pool.connect()
    await locker.query('begin; lock table outbox_dead_letter in access exclusive mode')
    try {
      const hanging = metricsWithin(2_000).render()
      const order = { aggregateId: 'a', headers: ATTRIBUTES, payload: { identifier: 'a' } } as const
      await system.untilStatus(await system.publish('OrderAccepted', order), 'DONE')
      const { samples } = parseExposition(await hanging)
      expect(samples.get('everbit_outbox_collection_success')).toBe(0)
      expect(samples.has(`everbit_outbox_pending{${TRADE}}`)).toBe(false)
    } finally {
      await locker.query('rollback')
      locker.release()
    }
  })
})
