import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { fixed } from '../../src/settle/backoff.ts'
import type { SubscriptionOptions } from '../../src/worker/subscription-options.ts'
import type { WorkerOptions } from '../../src/worker/worker-options.ts'
import { deferred, eventAt, turn } from '../queue/fakes.ts'
import { advanceUntil, type events, type MemoryOutboxOptions, memoryOutbox } from './memory-outbox.ts'

type Options = Omit<SubscriptionOptions<typeof events, unknown>, 'on'>

async function setup(options: Options = {}, more: MemoryOutboxOptions & WorkerOptions = {}) {
  const { lanes, onOpen, ...workerOptions } = more
  const memory = memoryOutbox({
    ...(lanes === undefined ? {} : { lanes }),
    ...(onOpen === undefined ? {} : { onOpen }),
  })
  const observed: WorkerEvent[] = []
  const ran: number[] = []
  let running = 0
  let mostRunning = 0
  const things = memory.outbox.subscription('things', {
    ...options,
    on: {
      ThingHappened: async (event) => {
        running += 1
        mostRunning = Math.max(mostRunning, running)
        await memory.clock.sleep(10)
        ran.push(Number(event.position))
        running -= 1
      },
    },
  })
  const worker = memory.outbox.worker([things], {
    ...workerOptions,
    observers: [(event) => void observed.push(event)],
  })
  await worker.start()
  const stop = async (): Promise<void> => {
    const stopped = worker.stop()
    await memory.clock.advance(1_000)
    await stopped
  }
  const calls = (name: string): number => memory.stores[0]?.calls.filter((call) => call === name).length ?? 0
  return { ...memory, worker, observed, ran, mostRunning: () => mostRunning, calls, stop }
}

describe('a worker that has nothing to do', () => {
  test('polls less and less often, up to a second apart', async () => {
    const { clock, calls, stop } = await setup()
    await clock.advance(10_000)
    const before = calls('claim')
    await clock.advance(10_000)
    expect(calls('claim') - before).toBe(10)
    await stop()
  })

  test('looks at once when woken, and once only, however often', async () => {
    const { clock, outbox, tables, ran, calls, stop } = await setup()
    await clock.advance(10_200)
    const before = calls('claim')
    tables.publish()
    for (let rings = 0; rings < 50; rings += 1) outbox.wake()
    await turn()
    await clock.advance(11)
    expect(ran).toEqual([1])
    // What it found was less than it asked for, so there is no more: the next look is not in the way of the next event.
    expect(calls('claim') - before).toBe(1)
    await stop()
  })
})

describe('a claim that brings all there is', () => {
  test('has its handlers run at once: there is no other claim to be sent before', async () => {
    const { outbox, tables, clock } = memoryOutbox()
    let othersHadATurn = false
    let waited: boolean | null = null
    const things = outbox.subscription('things', {
      on: {
        ThingHappened: () => {
          waited = othersHadATurn
        },
      },
    })
    const observe = ({ kind }: WorkerEvent): void => {
      if (kind === 'claimed') setImmediate(() => (othersHadATurn = true))
    }
    const worker = outbox.worker([things], { observers: [observe] })
    tables.publish()
    await worker.start()
    await clock.advance(10)
    expect(waited).toBe(false)
    const stopped = worker.stop()
    await clock.advance(1_000)
    await stopped
  })
})

describe('D1 a worker that takes one batch per period', () => {
  test('makes one claim of at most its batch size every five seconds, woken or not', async () => {
    const { clock, outbox, tables, ran, stop } = await setup({ batchSize: 50, pollMs: 5_000, drain: false })
    for (let n = 0; n < 120; n += 1) tables.publish()
    await clock.advance(4_000)
    expect(ran.length).toBe(50)
    outbox.wake()
    const batches: number[] = []
    for (let period = 0; period < 3; period += 1) {
      const before = ran.length
      await clock.advance(5_000)
      batches.push(ran.length - before)
    }
    expect(batches).toEqual([50, 20, 0])
    await stop()
  })
})

describe('U1 a subscription of one at a time', () => {
  test('runs one handler, over all workers', async () => {
    const { clock, tables, outbox, ran, mostRunning, stop, stores } = await setup(
      { oneAtATime: true },
      { lanes: 1 },
    )
    const other = outbox.worker([
      outbox.subscription('things', { oneAtATime: true, on: { ThingHappened: () => void ran.push(-1) } }),
    ])
    await other.start()
    for (let n = 0; n < 20; n += 1) tables.publish(`key-${n}`)
    await advanceUntil(clock, () => ran.length === 20)
    expect(mostRunning()).toBe(1)
    expect(ran).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
    expect(stores).toHaveLength(2)
    const stopped = other.stop()
    await stop()
    await stopped
  })
})

describe('suspects', () => {
  test.each([
    { concurrency: 5, together: 2 },
    { concurrency: 1, together: 1 },
  ])('run first one and then two together, but no more than may: %j', async ({ concurrency, together }) => {
    const { clock, tables, mostRunning, ran, observed, stop } = await setup({ concurrency })
    for (let n = 0; n < 4; n += 1) {
      Object.assign(tables.publish(), { status: 'PROCESSING', lockedUntilMs: -1, token: 99, attempts: 1 })
    }
    await advanceUntil(clock, () => ran.length === 4)
    expect(mostRunning()).toBe(together)
    expect(observed).toContainEqual({
      kind: 'recovered',
      subscription: 'things',
      count: 4,
      suspects: 4,
      dead: 0,
    })
    await advanceUntil(clock, () => tables.counts()['DONE'] === 4)
    expect(tables.rows.every(({ attempts }) => attempts === 1)).toBe(true)
    await stop()
  })

  test.each([
    { order: 'none', lanes: 0 },
    { order: 'aggregate', lanes: 1 },
  ] as const)(
    'that are claimed while the worker stops are given back, not run: %j',
    async ({ order, lanes }) => {
      const [claimed, answer] = [deferred(), deferred()]
      const { clock, tables, ran, worker } = await setup(
        { order },
        {
          lanes,
          onOpen: (store) => {
            store.interpose = async (operation, when) => {
              if (operation !== 'claimSuspects' || when !== 'after') return
              claimed.resolve()
              await answer.promise
            }
          },
        },
      )
      Object.assign(tables.publish(), { held: true, suspect: true, nextRetryAtMs: clock.monotonicMs() })
      await advanceUntil(clock, () => tables.counts()['PROCESSING'] === 1)
      await claimed.promise
      const stopped = worker.stop()
      await turn()
      answer.resolve()
      await clock.advance(1_000)
      await stopped
      expect(ran).toEqual([])
      expect(tables.rows).toMatchObject([{ status: 'PENDING', suspect: true, attempts: 0 }])
    },
  )
})

describe('D4 an event', () => {
  test('without a handler becomes a dead letter at once', async () => {
    const { clock, tables, observed, stop } = await setup({ streams: ['none.*'] })
    tables.publish('k', 'NeverHeardOf')
    await advanceUntil(clock, () => tables.counts()['DEAD'] === 1)
    const [dead] = observed.filter((event) => event.kind === 'dead')
    expect(dead).toMatchObject({ kind: 'dead', failure: { code: 'NO_HANDLER' }, attempt: 1 })
    await stop()
  })

  test('that only newer code declared waits for that code, ten minutes at most', async () => {
    const { clock, tables, stop } = await setup({ retry: fixed(1) })
    await clock.advance(1_000)
    // As a worker sees it whose wall clock is hours ahead of the database's.
    tables.createdAt = new Date(clock.now().getTime() - 4 * 3_600_000)
    tables.publish('k', 'DeclaredByNewerCode')
    await clock.advance(9 * 60_000)
    expect(tables.counts()).toEqual({ PENDING: 1 })
    expect(tables.rows[0]?.attempts).toBe(0)
    await clock.advance(2 * 60_000)
    expect(tables.counts()).toEqual({ DEAD: 1 })
    await stop()
  })

  test('that no subscription takes is reported', async () => {
    const { clock, observed, stop } = await setup(
      {},
      {
        onOpen: (store) => {
          store.unmatched = [{ ...eventAt(1), eventId: 'e1', stream: 's', type: 'NobodyWantsIt' }]
        },
      },
    )
    await clock.advance(1_000)
    const [unmatched] = observed.filter((event) => event.kind === 'unmatched')
    expect(unmatched).toMatchObject({ event: { eventId: 'e1', stream: 's', type: 'NobodyWantsIt' } })
    await stop()
  })
})
