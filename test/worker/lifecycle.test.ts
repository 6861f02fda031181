import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { type Deferred, deferred, turn } from '../queue/fakes.ts'
import { advanceUntil, memoryOutbox } from './memory-outbox.ts'

/** A worker whose handlers end when the test says so. */
function setup({ concurrency = 2, lanes = 0, drainMs = 10_000 } = {}) {
  const memory = memoryOutbox({ lanes })
  const running = new Map<number, Deferred<void>>()
  const aborted: number[] = []
  const observed: WorkerEvent[] = []
  const things = memory.outbox.subscription('things', {
    concurrency,
    ...(lanes === 0 ? {} : { order: 'aggregate', lanes }),
    on: {
      ThingHappened: async (event, ctx) => {
        const position = Number(event.position)
        const end = deferred()
        running.set(position, end)
        ctx.signal.addEventListener('abort', () => void aborted.push(position))
        await end.promise
      },
    },
  })
  const worker = memory.outbox.worker([things], {
    drainMs,
    observers: [(event) => void observed.push(event)],
  })
  const publish = (count: number): void => {
    for (let n = 0; n < count; n += 1) memory.tables.publish(`key-${n}`)
  }
  return { ...memory, worker, running, aborted, observed, publish }
}

describe('a worker that stops', () => {
  test('W8 claims no more, gives back what it had not started, and lets handlers finish', async () => {
    const { clock, worker, running, aborted, tables, stores, publish } = setup()
    publish(10)
    await worker.start()
    await advanceUntil(clock, () => running.size === 2)
    const stopped = worker.stop()
    await clock.advance(100)
    expect(tables.counts()).toEqual({ PROCESSING: 2, PENDING: 8 })
    expect(
      tables.rows.filter(({ status }) => status === 'PENDING').every(({ attempts }) => attempts === 0),
    ).toBe(true)
    const claims = stores[0]?.calls.filter((call) => call === 'claim').length
    await clock.advance(5_000)
    for (const end of running.values()) end.resolve()
    await clock.advance(100)
    await stopped
    expect(tables.counts()).toEqual({ DONE: 2, PENDING: 8 })
    expect(aborted).toEqual([])
    expect(stores[0]?.calls.filter((call) => call === 'claim').length).toBe(claims)
  })

  test('keeps its leases alive while it waits', async () => {
    const { clock, worker, running, stores, publish } = setup({ drainMs: 60_000 })
    publish(2)
    await worker.start()
    await advanceUntil(clock, () => running.size === 2)
    const stopped = worker.stop()
    const before = stores[0]?.calls.filter((call) => call === 'heartbeat').length ?? 0
    await clock.advance(50_000)
    expect(
      (stores[0]?.calls.filter((call) => call === 'heartbeat').length ?? 0) - before,
    ).toBeGreaterThanOrEqual(4)
    for (const end of running.values()) end.resolve()
    await clock.advance(100)
    await stopped
  })

  test('aborts the signals of handlers that take longer than it waits, and returns their attempts', async () => {
    const { clock, worker, running, aborted, tables, publish } = setup({ drainMs: 1_000 })
    publish(2)
    await worker.start()
    await advanceUntil(clock, () => running.size === 2)
    const stopped = worker.stop()
    await clock.advance(1_100)
    await stopped
    expect(aborted).toEqual([1, 2])
    expect(tables.counts()).toEqual({ PENDING: 2 })
    expect(tables.rows.map(({ attempts }) => attempts)).toEqual([0, 0])
  })

  test('leaves in order: results, lanes, itself, connections', async () => {
    const { clock, worker, running, stores, tables, publish } = setup({ lanes: 2 })
    publish(3)
    await worker.start()
    await advanceUntil(clock, () => running.size === 2)
    const stopped = worker.stop()
    for (const end of running.values()) end.resolve()
    await clock.advance(1_000)
    await stopped
    const last = stores[0]?.calls.filter((call) =>
      ['settle', 'releaseLanes', 'leave', 'close'].includes(call),
    )
    expect(last?.slice(-3)).toEqual(['releaseLanes', 'leave', 'close'])
    expect(last?.lastIndexOf('settle')).toBeLessThan(last?.indexOf('releaseLanes') ?? 0)
    expect(tables.lanes.every(({ owner }) => owner === null)).toBe(true)
    expect(tables.workers.size).toBe(0)
  })

  test('tells that it started, stops and stopped', async () => {
    const { clock, worker, observed } = setup()
    await worker.start()
    const stopped = worker.stop()
    await clock.advance(100)
    await stopped
    expect(observed.map(({ kind }) => kind).filter((kind) => kind.startsWith('st'))).toEqual([
      'started',
      'stopping',
      'stopped',
    ])
    expect(clock.sleeping).toBe(0)
  })

  test('ends although the database does not answer any more', async () => {
    const { clock, worker, running, stores, observed, publish } = setup({ drainMs: 1_000 })
    publish(2)
    await worker.start()
    await advanceUntil(clock, () => running.size === 2)
    const [store] = stores
    if (store !== undefined) store.interpose = () => new Promise(() => {})
    const stopped = worker.stop()
    await clock.advance(60_000)
    await stopped
    expect(observed.some((event) => event.kind === 'error')).toBe(true)
  })
})

describe('a worker', () => {
  test('can be started and stopped any number of times over', async () => {
    const { clock, worker, stores } = setup()
    await Promise.all([worker.start(), worker.start()])
    const stops = [worker.stop(), worker.stop()]
    await clock.advance(100)
    await Promise.all(stops)
    expect(stores).toHaveLength(1)
    await expect(worker.start()).rejects.toThrow('This worker was stopped')
  })

  test('stopped before it was started does nothing at all', async () => {
    const { worker, stores } = setup()
    await worker.stop()
    expect(stores).toEqual([])
    await expect(worker.start()).rejects.toThrow('This worker was stopped')
  })

  test('stopped while it starts comes to a stop', async () => {
    const { clock, worker, stores } = setup()
    const started = worker.start()
    const stopped = worker.stop()
    await clock.advance(100)
    await Promise.all([started, stopped])
    expect(stores[0]?.closed).toBe(true)
  })

  test('that could not start closes its connections and can be started again', async () => {
    let isDown = true
    const { clock, outbox, stores } = memoryOutbox({
      onOpen: (store) => {
        store.interpose = (operation) => {
          if (operation === 'register' && isDown) throw new Error('no database')
        }
      },
    })
    const worker = outbox.worker([outbox.subscription('things', { on: { ThingHappened: () => {} } })])
    await expect(worker.start()).rejects.toThrow('no database')
    expect(stores[0]?.closed).toBe(true)
    isDown = false
    await worker.start()
    const stopped = worker.stop()
    await clock.advance(100)
    await stopped
    expect(stores).toHaveLength(2)
  })

  test('is stopped at the end of its scope', async () => {
    const { clock, worker, stores } = setup()
    await worker.start()
    const disposed = worker[Symbol.asyncDispose]()
    await clock.advance(100)
    await disposed
    expect(stores[0]?.closed).toBe(true)
  })

  test('is active once none of its subscriptions is joining', async () => {
    const joining = ['things', 'others']
    const { clock, outbox } = memoryOutbox({
      onOpen: (store) => {
        store.joining = joining
      },
    })
    const worker = outbox.worker([outbox.subscription('things', { on: { ThingHappened: () => {} } })])
    let isActive = false
    void worker.active().then(() => {
      isActive = true
    })
    await clock.advance(5_000)
    expect(isActive).toBe(false)
    joining.shift()
    await clock.advance(1_000)
    await turn()
    expect(isActive).toBe(true)
    const stopped = worker.stop()
    await clock.advance(100)
    await stopped
  })
})
