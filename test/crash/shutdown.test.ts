import { describe, expect, test } from 'vitest'
import {
  allDone,
  createFaultDatabase,
  type FaultDatabase,
  historyOf,
  joined,
  workerOn,
} from '../support/fault-database.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import type { PublishedEvent } from '../support/history.ts'
import { bePatient, comes } from '../support/patience.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import type { SubscriptionConfig, WorkerConfig } from '../support/worker-config.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

const unordered: SubscriptionConfig = { name: 'unordered', concurrency: 2 }
const ordered: SubscriptionConfig = { name: 'ordered', order: 'aggregate', concurrency: 2 }

/** So long that nothing in these tests can happen because it ran out. */
const LONG_LEASE_MS = 600_000

/** What writing down, leaving and closing may take at most after the drain time, each. */
const LAST_WORDS_MS = 5_000
/** For a machine that does much else. */
const MARGIN_MS = 5_000

/** A worker with two handlers that hold, and more in hand that has not started. */
async function holdingWorker(
  database: FaultDatabase,
  subscription: SubscriptionConfig,
  more: Partial<WorkerConfig> = {},
): Promise<{ readonly worker: WorkerProcess; readonly committed: readonly PublishedEvent[] }> {
  const config = { leaseMs: LONG_LEASE_MS, handlers: { hold: true }, ...more }
  const worker = new WorkerProcess(workerOn(database, 'leaver', subscription, config))
  await worker.told('started')
  await joined(database, subscription.name)
  const committed = walks(4, 5)
  await publishSteps(stepOutbox(database.pool, database.schema), database.pool, committed)
  await worker.told('begun', 2)
  return { worker, committed }
}

/** How the deliveries stand: in hand, or free to be claimed at once with no attempt spent. */
async function countHeld({ pool, schema }: FaultDatabase): Promise<{ held: number; free: number }> {
  const { rows } = await pool.query<{ held: string; free: string }>(
    `select count(*) filter (where status = 'PROCESSING') as held,
            count(*) filter (where status = 'PENDING' and attempt_count = 0
                               and coalesce(next_retry_at, now()) <= clock_timestamp()) as free
       from ${schema}.outbox_delivery`,
  )
  return { held: Number(rows[0]?.held), free: Number(rows[0]?.free) }
}

describe('SIGTERM', () => {
  test('E2 lets running handlers finish and frees at once, with their attempts, what had not started', async () => {
    await using database = await createFaultDatabase()
    const { worker, committed } = await holdingWorker(database, unordered)
    await using _leaver = worker
    expect((await countHeld(database)).held).toBeGreaterThan(2)

    worker.signal('SIGTERM')
    await comes('only what runs is held', async () => {
      const { held, free } = await countHeld(database)
      return held === 2 && free === committed.length - 2
    })
    // Another worker goes on with the rest while this one waits for its handlers.
    await using heir = new WorkerProcess(workerOn(database, 'heir', unordered, { leaseMs: LONG_LEASE_MS }))
    await heir.told('handled', committed.length - 2)
    expect(worker.isAlive).toBe(true)
    worker.go()

    expect(await worker.ended).toEqual({ code: 0, signal: null })
    expect(worker.of('handled').length).toBe(2)
    await allDone(database, committed.length)
    expect([...worker.of('handled'), ...heir.of('handled')].every(({ attempt }) => attempt === 1)).toBe(true)
    const { inversions: _, ...rest } = await historyOf(database, committed)
    expect(rest).toEqual({ lost: [], phantoms: [], duplicates: [] })
  })

  test('U4 of an ordered subscription hands its lanes over at the end, without a lease to wait for', async () => {
    await using database = await createFaultDatabase()
    const { worker, committed } = await holdingWorker(database, ordered)
    await using _leaver = worker
    await using _heir = new WorkerProcess(workerOn(database, 'heir', ordered, { leaseMs: LONG_LEASE_MS }))

    worker.signal('SIGTERM')
    await worker.told('stopping')
    worker.go()

    expect(await worker.ended).toEqual({ code: 0, signal: null })
    await allDone(database, committed.length)
    expect(await historyOf(database, committed)).toEqual({
      lost: [],
      phantoms: [],
      inversions: [],
      duplicates: [],
    })
  })

  test('a second one ends the process at once, whatever its handlers do', async () => {
    await using database = await createFaultDatabase()
    const { worker } = await holdingWorker(database, unordered, { drainMs: 600_000 })
    await using _leaver = worker

    worker.signal('SIGTERM')
    await worker.told('stopping')
    worker.signal('SIGTERM')

    expect(await worker.ended).toEqual({ code: 143, signal: null })
  })

  test('interrupts handlers that take longer than the drain time, and gives their attempts back', async () => {
    await using database = await createFaultDatabase()
    const { worker, committed } = await holdingWorker(database, unordered, { drainMs: 100 })
    await using _leaver = worker

    worker.signal('SIGTERM')

    expect(await worker.ended).toEqual({ code: 0, signal: null })
    expect(await countHeld(database)).toEqual({ held: 0, free: committed.length })
  })

  test('ends the process in time while the database is down', async () => {
    await using database = await createFaultDatabase()
    await using proxy = await startFaultProxy(database.url)
    const { worker } = await holdingWorker(database, ordered, {
      url: proxy.urlOf(database.url),
      drainMs: 1_000,
    })
    await using _leaver = worker

    proxy.refuse()
    const sentAtMs = performance.now()
    worker.signal('SIGTERM')
    worker.go()

    expect(await worker.ended).toEqual({ code: 0, signal: null })
    expect(performance.now() - sentAtMs).toBeLessThan(1_000 + 3 * LAST_WORDS_MS + MARGIN_MS)
    expect(worker.of('stopped').length).toBe(1)
  })

  test('ends the process in time while the database does not answer', async () => {
    await using database = await createFaultDatabase()
    await using proxy = await startFaultProxy(database.url)
    const { worker } = await holdingWorker(database, ordered, {
      url: proxy.urlOf(database.url),
      connections: { query_timeout: 3_000, connectionTimeoutMillis: 3_000 },
      listen: true,
      drainMs: 1_000,
    })
    await using _leaver = worker

    proxy.silence()
    proxy.refuseNew()
    const sentAtMs = performance.now()
    worker.signal('SIGTERM')
    worker.go()

    expect(await worker.ended).toEqual({ code: 0, signal: null })
    expect(performance.now() - sentAtMs).toBeLessThan(1_000 + 3 * LAST_WORDS_MS + MARGIN_MS)
  })
})
