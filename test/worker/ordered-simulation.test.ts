import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../src/runtime/random.ts'
import { fixed } from '../../src/settle/backoff.ts'
import type { Worker } from '../../src/worker/worker.ts'
import type { MemoryStore } from '../queue/memory-store.ts'
import { advanceUntil, memoryOutbox } from './memory-outbox.ts'
import { Referee } from './referee.ts'

interface Scenario {
  readonly seed: number
  readonly workers: number
  readonly keys: number
  readonly events: number
  /** How often a handler throws. */
  readonly failing: number
  /** How often a call to the store fails, half of them after it had its effect. */
  readonly cut: number
  /** What happens to the first worker half-way. */
  readonly fate: 'none' | 'stop' | 'vanish'
  readonly mostAttempts: number
  readonly onDead: 'block' | 'continue'
  readonly concurrency: number
  readonly batchSize: number
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  workers: fc.integer({ min: 2, max: 3 }),
  keys: fc.integer({ min: 1, max: 6 }),
  events: fc.integer({ min: 1, max: 60 }),
  failing: fc.constantFrom(0, 0.1, 0.4),
  cut: fc.constantFrom(0, 0, 0.03),
  fate: fc.constantFrom('none', 'stop', 'vanish'),
  mostAttempts: fc.constantFrom(2, 1_000),
  onDead: fc.constant('continue'),
  concurrency: fc.integer({ min: 1, max: 8 }),
  batchSize: fc.integer({ min: 1, max: 30 }),
})

const never = new Promise<never>(() => {})

async function simulate(given: Scenario) {
  const random = seededRandom(given.seed)
  const referee = new Referee()
  const vanished = new Set<number>()
  let quiet = true
  const { clock, tables, outbox, stores } = memoryOutbox({
    lanes: 4,
    random,
    onOpen: (store: MemoryStore) => {
      const index = stores.length - 1
      // Every call takes its time, before it has its effect and after.
      store.interpose = async (operation) => {
        await clock.sleep(random() * 30)
        if (vanished.has(index)) await never
        const mayBeCut = operation !== 'assertReady' && operation !== 'register' && !quiet
        if (mayBeCut && random() < given.cut / 2) throw new Error('connection cut')
      }
    },
  })
  tables.maxAttempts = given.mostAttempts
  tables.onDead = given.onDead
  const publishHalf = (): void => {
    for (let n = 0; n < given.events / 2; n += 1) {
      referee.publish(tables.publish(`key-${Math.floor(random() * given.keys)}`))
    }
  }
  const workerOf = (index: number): Worker => {
    const things = outbox.subscription('things', {
      order: 'aggregate',
      lanes: 4,
      onDead: given.onDead,
      concurrency: given.concurrency,
      batchSize: given.batchSize,
      retry: fixed(20),
      on: {
        ThingHappened: async (event, ctx) => {
          if (vanished.has(index)) await never
          referee.start(event, index)
          await clock.sleep(random() * 20)
          if (vanished.has(index)) await never
          const succeeded = random() >= given.failing
          referee.end(event, succeeded || (given.onDead === 'continue' && ctx.attempt >= ctx.maxAttempts))
          if (!succeeded) throw new Error('not this time')
        },
      },
    })
    return outbox.worker([things], { leaseMs: 3_000, housekeepingMs: 200 })
  }
  publishHalf()
  const workers = Array.from({ length: given.workers }, (_, index) => workerOf(index))
  for (const worker of workers) void worker.start()
  await clock.advance(200)
  quiet = false
  publishHalf()
  await clock.advance(100)
  if (given.fate === 'stop') void workers[0]?.stop()
  if (given.fate === 'vanish') referee.vanish(vanished.add(0))
  await advanceUntil(clock, () => tables.rows.every(({ status }) => status === 'DONE' || status === 'DEAD'))
  quiet = true
  const live = workers.filter((_, index) => !vanished.has(index))
  const stopped = Promise.all(live.map((worker) => worker.stop()))
  await clock.advance(60_000)
  await stopped
  const kept = tables.lanes.filter(({ owner }) => live.some(({ id }) => id === owner))
  return { faults: referee.faults, kept }
}

describe('U4 an ordered subscription', () => {
  test('keeps the order of every key, whatever fails, vanishes or is cut, and however calls interleave', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const { faults, kept } = await simulate(given)
        expect(faults).toEqual([])
        // Lanes that a cut call took, or failed to give back, lapse by themselves.
        if (given.cut === 0) expect(kept).toEqual([])
      }),
      { numRuns: Number(process.env['SIMULATIONS'] ?? 60) },
    )
  }, 120_000)
})
