import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../src/runtime/random.ts'
import { fixed } from '../../src/settle/backoff.ts'
import { subscription } from '../../src/worker/subscription.ts'
import { advanceUntil, memoryOutbox } from './memory-outbox.ts'

interface Run {
  readonly key: string
  readonly position: number
}

/** What went wrong, in words. */
class Referee {
  readonly faults: string[] = []
  readonly handled = new Set<number>()
  readonly #running = new Map<string, number>()
  readonly #keys = new Map<string, number[]>()

  publish({ key, position }: Run): void {
    this.#keys.set(key, [...(this.#keys.get(key) ?? []), position])
  }

  start({ key, position }: Run): void {
    const other = this.#running.get(key)
    if (other !== undefined) this.faults.push(`${position} of ${key} started while ${other} was running`)
    this.#running.set(key, position)
    const skipped = (this.#keys.get(key) ?? []).filter((one) => one < position && !this.handled.has(one))
    if (skipped.length > 0) this.faults.push(`${position} of ${key} started before ${skipped.join(', ')}`)
  }

  end({ key, position }: Run, succeeded: boolean): void {
    this.#running.delete(key)
    if (succeeded) this.handled.add(position)
  }
}

interface Scenario {
  readonly seed: number
  readonly workers: number
  readonly keys: number
  readonly events: number
  /** How often a handler throws. */
  readonly failing: number
  /** How often a call to the store fails, half of them after it had its effect. */
  readonly cut: number
  readonly concurrency: number
  readonly batchSize: number
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  workers: fc.integer({ min: 1, max: 3 }),
  keys: fc.integer({ min: 1, max: 6 }),
  events: fc.integer({ min: 1, max: 60 }),
  failing: fc.constantFrom(0, 0.1, 0.4),
  cut: fc.constantFrom(0, 0, 0.03),
  concurrency: fc.integer({ min: 1, max: 8 }),
  batchSize: fc.integer({ min: 1, max: 30 }),
})

async function simulate({ seed, workers, keys, events, failing, cut, concurrency, batchSize }: Scenario) {
  const random = seededRandom(seed)
  const referee = new Referee()
  let quiet = true
  const { clock, tables, outbox } = memoryOutbox({
    lanes: 4,
    random,
    // Every call takes its time, before it has its effect and after.
    onOpen: (store) => {
      store.interpose = async (operation) => {
        await clock.sleep(random() * 30)
        const mayBeCut = operation !== 'assertReady' && operation !== 'register' && !quiet
        if (mayBeCut && random() < cut / 2) throw new Error('connection cut')
      }
    },
  })
  tables.maxAttempts = 1_000
  const publish = (): void => {
    const { key, position } = tables.publish(`key-${Math.floor(random() * keys)}`)
    referee.publish({ key, position: Number(position) })
  }
  for (let n = 0; n < events / 2; n += 1) publish()
  const things = subscription<typeof outbox.events, unknown>('things', {
    order: 'aggregate',
    lanes: 4,
    concurrency,
    batchSize,
    retry: fixed(20),
    on: {
      ThingHappened: async (event) => {
        const run = { key: event.aggregateId, position: Number(event.position) }
        referee.start(run)
        await clock.sleep(random() * 20)
        const succeeded = random() >= failing
        referee.end(run, succeeded)
        if (!succeeded) throw new Error('not this time')
      },
    },
  })
  const started = Array.from({ length: workers }, () => outbox.worker([things], { leaseMs: 3_000 }))
  for (const worker of started) void worker.start()
  await clock.advance(200)
  quiet = false
  for (let n = 0; n < events / 2; n += 1) publish()
  await advanceUntil(clock, () => tables.rows.every(({ status }) => status === 'DONE'))
  quiet = true
  const stopped = Promise.all(started.map((worker) => worker.stop()))
  await clock.advance(60_000)
  await stopped
  return { faults: referee.faults, lanes: tables.lanes.map(({ owner }) => owner) }
}

describe('U4 an ordered subscription', () => {
  test('keeps the order of every key, whatever fails and however calls interleave', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const { faults, lanes } = await simulate(given)
        expect(faults).toEqual([])
        expect(lanes).toEqual([null, null, null, null])
      }),
      { numRuns: Number(process.env['SIMULATIONS'] ?? 60) },
    )
  }, 120_000)
})
