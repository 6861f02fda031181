import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HandlerContext } from '../../src/dispatch/handler.ts'
import type { OutboxEvent } from '../../src/event/event.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { type Random, seededRandom } from '../../src/runtime/random.ts'
import { fixed } from '../../src/settle/backoff.ts'
import type { Worker } from '../../src/worker/worker.ts'
import type { MemoryStore } from '../queue/memory-store.ts'
import { advanceUntil, type MemoryOutbox, memoryOutbox } from './memory-outbox.ts'
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
  /** How often the database refuses to write a result down. */
  readonly refusing: number
  /** How often somebody locks a row in hand when a result is to be written. */
  readonly locking: number
  /** How often a call to the store takes so long that leases run out. */
  readonly slow: number
  /** What happens to the first worker half-way. */
  readonly fate: 'none' | 'stop' | 'vanish' | 'freeze'
  /** For how long it is frozen, if it is: it sends nothing, hears nothing and does not know. */
  readonly frozenMs: number
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
  refusing: fc.constantFrom(0, 0, 0.1, 0.4),
  locking: fc.constantFrom(0, 0, 0.1, 0.4),
  slow: fc.constantFrom(0, 0, 0.05, 0.2),
  fate: fc.constantFrom('none', 'stop', 'vanish', 'freeze'),
  frozenMs: fc.integer({ min: 100, max: 9_000 }),
  mostAttempts: fc.constantFrom(2, 1_000),
  onDead: fc.constant('continue'),
  concurrency: fc.integer({ min: 1, max: 8 }),
  batchSize: fc.integer({ min: 1, max: 30 }),
})

const LEASE_MS = 3_000
const SLOWEST_MS = 2_500
const SLOW_UNTIL_MS = 20_000
/** Longer than a lease: some are lost under the lock. */
const LONGEST_LOCK_MS = 5_000

const never = new Promise<never>(() => {})

/** The time of one process, which may stand still while that of the database goes on. */
class FreezableClock implements Clock {
  readonly #clock: Clock
  #frozenUntilMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): Date {
    return this.#clock.now()
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs()
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await this.#clock.sleep(ms, signal)
    await this.untilRunning()
  }

  isFrozen(): boolean {
    return this.#clock.monotonicMs() < this.#frozenUntilMs
  }

  freeze(ms: number): void {
    this.#frozenUntilMs = this.#clock.monotonicMs() + ms
  }

  async untilRunning(): Promise<void> {
    const leftMs = this.#frozenUntilMs - this.#clock.monotonicMs()
    if (leftMs > 0) await this.#clock.sleep(leftMs)
  }
}

/** Some workers on one store, and whatever happens to them. */
class Simulation {
  readonly referee = new Referee()
  readonly #given: Scenario
  readonly #random: Random
  readonly #vanished = new Set<number>()
  readonly #memory: MemoryOutbox
  readonly #clocks: readonly FreezableClock[]
  readonly #workers: readonly Worker[]
  #isQuiet = true

  constructor(given: Scenario) {
    this.#given = given
    this.#random = seededRandom(given.seed)
    this.#memory = memoryOutbox({ lanes: 4 })
    this.#clocks = Array.from({ length: given.workers }, () => new FreezableClock(this.#memory.clock))
    this.#memory.tables.maxAttempts = given.mostAttempts
    this.#memory.tables.onDead = given.onDead
    this.#publishHalf()
    this.#workers = this.#clocks.map((clock, index) => this.#workerOf(index, clock))
  }

  /** Runs it until every event has come to its end and the workers have stopped. */
  async run(): Promise<void> {
    const { clock, tables } = this.#memory
    for (const worker of this.#workers) void worker.start()
    await clock.advance(200)
    this.#isQuiet = false
    this.#publishHalf()
    await clock.advance(100)
    if (this.#given.fate === 'stop') void this.#workers[0]?.stop()
    if (this.#given.fate === 'vanish') this.referee.vanish(this.#vanished.add(0))
    // What it was running may run elsewhere before it wakes up: at least once, as promised.
    if (this.#given.fate === 'freeze') this.referee.vanish(new Set([0]))
    if (this.#given.fate === 'freeze') this.#clocks[0]?.freeze(this.#given.frozenMs)
    await advanceUntil(clock, () => tables.rows.every(({ status }) => status === 'DONE' || status === 'DEAD'))
    this.#isQuiet = true
    const stopped = Promise.all(this.#live().map((worker) => worker.stop()))
    await clock.advance(60_000)
    await stopped
  }

  /** What was out of order: for handlers, or in the tables. */
  faults(): readonly string[] {
    return [...this.referee.faults, ...this.#memory.tables.faults]
  }

  /** The lanes that workers which have stopped did not give back. */
  kept(): readonly unknown[] {
    const stopped = this.#live().map(({ id }) => id)
    return this.#memory.tables.lanes.filter(({ owner }) => owner !== null && stopped.includes(owner))
  }

  #live(): readonly Worker[] {
    return this.#workers.filter((_, index) => !this.#vanished.has(index))
  }

  /** Every call takes its time, before it has its effect and after, and may be cut. */
  #disturb(store: MemoryStore, index: number): void {
    const { clock } = this.#memory
    store.interpose = async (operation, when) => {
      const maySlow = !this.#isQuiet && clock.monotonicMs() < SLOW_UNTIL_MS
      const isSlow = maySlow && this.#random() < this.#given.slow
      await clock.sleep(this.#random() * (isSlow ? SLOWEST_MS : 30))
      if (this.#vanished.has(index)) await never
      // A statement that was sent is done; the answer is heard when the process runs again.
      if (when === 'after') await this.#clocks[index]?.untilRunning()
      const mayBeCut = operation !== 'assertReady' && operation !== 'register' && !this.#isQuiet
      if (mayBeCut && this.#random() < this.#given.cut / 2) throw new Error('connection cut')
      if (operation === 'settle' && when === 'before' && maySlow) this.#maybeLock()
      const mayRefuse = operation === 'settle' && when === 'before' && !this.#isQuiet
      if (mayRefuse && this.#random() < this.#given.refusing) {
        throw Object.assign(new Error('refused'), { code: '23514' })
      }
    }
  }

  #maybeLock(): void {
    if (this.#random() >= this.#given.locking) return
    const inHand = this.#memory.tables.rows.filter(({ status }) => status === 'PROCESSING')
    const row = inHand[Math.floor(this.#random() * inHand.length)]
    if (row !== undefined) this.#memory.tables.lock(row, this.#random() * LONGEST_LOCK_MS)
  }

  #publishHalf(): void {
    for (let n = 0; n < this.#given.events / 2; n += 1) {
      this.referee.publish(
        this.#memory.tables.publish(`key-${Math.floor(this.#random() * this.#given.keys)}`),
      )
    }
  }

  #workerOf(index: number, clock: Clock): Worker {
    const { concurrency, batchSize, onDead } = this.#given
    const { outbox } = memoryOutbox({
      random: this.#random,
      beside: { outbox: this.#memory, clock },
      onOpen: (store) => this.#disturb(store, index),
    })
    const things = outbox.subscription('things', {
      order: 'aggregate',
      lanes: 4,
      onDead,
      concurrency,
      batchSize,
      retry: fixed(20),
      on: { ThingHappened: (event, ctx) => this.#handle(index, event, ctx) },
    })
    return outbox.worker([things], { leaseMs: LEASE_MS, housekeepingMs: 200 })
  }

  async #handle(
    index: number,
    event: OutboxEvent,
    { attempt, maxAttempts }: Pick<HandlerContext, 'attempt' | 'maxAttempts'>,
  ): Promise<void> {
    if (this.#vanished.has(index)) await never
    // Begun in the moment of freezing: as with all it was running then.
    if (this.#clocks[index]?.isFrozen() !== true) this.referee.start(event, index)
    await this.#clocks[index]?.sleep(this.#random() * 20)
    if (this.#vanished.has(index)) await never
    const succeeded = this.#random() >= this.#given.failing
    const isDead = this.#given.onDead === 'continue' && attempt >= maxAttempts
    this.referee.end(event, succeeded || isDead)
    if (!succeeded) throw new Error('not this time')
  }
}

describe('U4 an ordered subscription', () => {
  test('keeps the order of every key, whatever fails, vanishes or is cut, and however calls interleave', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const simulation = new Simulation(given)
        await simulation.run()
        expect(simulation.faults()).toEqual([])
        // Lanes that a cut call took, or failed to give back, and those given up for lost lapse by themselves.
        if (given.cut + given.slow + given.refusing + given.locking === 0 && given.fate !== 'freeze')
          expect(simulation.kept()).toEqual([])
      }),
      { numRuns: Number(process.env['SIMULATIONS'] ?? 200) },
    )
  })
})
