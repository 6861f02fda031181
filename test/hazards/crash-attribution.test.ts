import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import { SuspectQuarantine } from '../../src/queue/suspects.ts'
import { SoloGate } from '../../src/runtime/gate.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { type Random, seededRandom } from '../../src/runtime/random.ts'
import type { HeldLane, LaneDelivery } from '../../src/store/queue-store.ts'
import type { WorkerStore } from '../../src/store/store.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import {
  claim,
  claimLanes,
  DONE,
  join,
  LEASE_MS,
  settled,
  takeLanes,
  unpark,
} from '../store/contract/helpers.ts'
import { column, one, withLetters } from '../store/postgres/fixtures.ts'
import { type Hazard, hazard, lapse, publish } from './support.ts'

const POISON = 'poison'

/** Worker processes, each of which dies when it runs a poisoned event, and now and then for no reason of an event's. */
class Fleet {
  readonly #h: Hazard
  readonly #store: WorkerStore
  readonly #sub: RegisteredSubscription
  readonly #random: Random
  readonly #delivered: ClaimedDelivery[] = []
  #processes = 0
  /** Times a process died with something in hand. */
  crashes = 0

  constructor(h: Hazard, store: WorkerStore, sub: RegisteredSubscription, random: Random) {
    this.#h = h
    this.#store = store
    this.#sub = sub
    this.#random = random
  }

  /** Positions in the order they were done, for each key. */
  get delivered(): ReadonlyMap<string, readonly number[]> {
    const byKey = new Map<string, number[]>()
    for (const { event, position } of this.#delivered) {
      byKey.set(event.aggregateId, [...(byKey.get(event.aggregateId) ?? []), Number(position)])
    }
    return byKey
  }

  /** The life of one process: it recovers, runs suspects in groups that grow and batches together, until it dies or has no work. */
  async live(): Promise<void> {
    this.#processes += 1
    const workerId = `process ${this.#processes}`
    const lanes = this.#sub.lanes > 0 ? await takeLanes(this.#store, this.#sub, workerId) : []
    await this.#store.recover([this.#sub.id])
    const survived = (await this.#runSuspects(workerId, lanes)) && (await this.#runBatch(workerId, lanes))
    if (!survived) this.crashes += 1
    // Dead or gone: either way its leases end.
    await lapse(this.#h.db, workerId)
  }

  async #runSuspects(workerId: string, lanes: readonly HeldLane[]): Promise<boolean> {
    const request = { subscriptionId: this.#sub.id, workerId, leaseMs: LEASE_MS, lanes }
    const quarantine = new SuspectQuarantine(new SoloGate(), new ManualClock())
    const death = new AbortController()
    const runSuspects = async (limit: number): Promise<boolean> => {
      const group = await this.#store.claimSuspects({ ...request, limit })
      const [only] = group
      if (only !== undefined && group.length === 1) await this.#store.markAlone(only)
      if (!(await this.#runTogether(group))) death.abort()
      return group.length > 0
    }
    await quarantine.runAll({ runSuspects }, death.signal)
    return !death.signal.aborted
  }

  /** At the same time: those beside a poisoned one go down with it, but for some that ended before. */
  async #runTogether(group: readonly LaneDelivery[]): Promise<boolean> {
    const isDeadly = group.some(isPoisoned)
    const ended = group.filter((delivery) => !isDeadly || (!isPoisoned(delivery) && this.#random() < 0.1))
    await this.#end(ended)
    await unpark(this.#store, this.#sub, ended)
    return !isDeadly
  }

  async #runBatch(workerId: string, lanes: readonly HeldLane[]): Promise<boolean> {
    const limit = 1 + Math.floor(this.#random() * 8)
    const batch =
      lanes.length > 0
        ? await claimLanes(this.#store, this.#sub, workerId, lanes, limit)
        : await claim(this.#store, this.#sub, workerId, limit)
    // A machine may fail under a batch; whoever is in it is innocent.
    return this.#run(batch, 0.2)
  }

  /** Runs what is in hand in some order; what was settled before the process died stays settled. */
  async #run(inHand: readonly ClaimedDelivery[], failsAt: number): Promise<boolean> {
    for (const delivery of inHand) {
      if (isPoisoned(delivery) || this.#random() < failsAt) return false
      await this.#end([delivery])
    }
    return true
  }

  async #end(deliveries: readonly ClaimedDelivery[]): Promise<void> {
    await this.#store.settle(deliveries.map((delivery) => settled(delivery, DONE)))
    this.#delivered.push(...deliveries)
  }
}

const isPoisoned = ({ event }: ClaimedDelivery): boolean => event.aggregateId.startsWith(POISON)

const openDeliveries = ({ db }: Hazard): Promise<number> =>
  one(db.pool, `select count(*)::int from outbox_delivery where status in ('PENDING', 'PROCESSING')`)

const deadOnes = ({ db }: Hazard): Promise<string[]> =>
  column(
    db.pool,
    `select e.aggregate_id from outbox_delivery d join outbox_event e using (event_id)
      where d.status = 'DEAD' order by 1`,
  )

/** Every delivery that waits is due, and so is every crashed one that waits for its next try. */
const letTimePass = ({ db }: Hazard): Promise<unknown> =>
  db.pool.query(`update outbox_delivery set next_retry_at = now() where status = 'PENDING' and next_retry_at > now()
    and next_retry_at < 'infinity'`)

async function runToTheEnd(
  h: Hazard,
  options: { readonly ordered: boolean; readonly maxAttempts: number; readonly seed: number },
) {
  const random = seededRandom(options.seed)
  const { store } = h.worker('fleet')
  const sub = await join(store, {
    orderBy: options.ordered ? 'aggregate' : 'none',
    onDead: 'continue',
    maxAttempts: options.maxAttempts,
  })
  const events = Array.from({ length: 30 }, (_, n) =>
    n % 10 === 4 ? `${POISON} ${n}` : `innocent ${n % 12}`,
  )
  await publish(h.db.pool, events)
  const fleet = new Fleet(h, store, sub, random)
  await liveToTheEnd(h, fleet)
  return { crashes: fleet.crashes, poison: events.filter((name) => name.startsWith(POISON)) }
}

async function liveToTheEnd(h: Hazard, fleet: Fleet): Promise<void> {
  for (let life = 0; (await openDeliveries(h)) > 0; life += 1) {
    expect(life, 'comes to an end').toBeLessThan(200)
    await fleet.live()
    await letTimePass(h)
  }
}

/** Hundreds in the hand of a worker that was killed, one of them poisoned. */
async function killedWithFullHands(h: Hazard, ordered: boolean, seed: number) {
  const random = seededRandom(seed)
  const { store } = h.worker('fleet')
  const sub = await join(store, {
    orderBy: ordered ? 'aggregate' : 'none',
    onDead: 'continue',
    maxAttempts: 2,
  })
  const events = Array.from({ length: 300 }, (_, n) => `innocent ${n % 100}`)
  events[Math.floor(random() * events.length)] = POISON
  await publish(h.db.pool, events)
  if (ordered) await claimLanes(store, sub, 'killed', await takeLanes(store, sub, 'killed'), 300)
  else await claim(store, sub, 'killed', 300)
  await lapse(h.db, 'killed')
  return new Fleet(h, store, sub, random)
}

describe('events that take their worker down', () => {
  test.each([
    { ordered: false, maxAttempts: 1, seed: 1 },
    { ordered: false, maxAttempts: 3, seed: 2 },
    { ordered: true, maxAttempts: 1, seed: 3 },
    { ordered: true, maxAttempts: 2, seed: 4 },
  ])('always end as dead letters, and nobody innocent with them: %j', async (options) => {
    await using h = await hazard()
    const { crashes, poison } = await runToTheEnd(h, options)
    expect(crashes).toBeGreaterThanOrEqual(poison.length * options.maxAttempts)
    expect(await deadOnes(h)).toEqual(poison.toSorted())
    const codes = await column(h.db.pool, `select distinct error_code from outbox_dead_letter`)
    expect(codes).toEqual(['CRASHED'])
  })

  test.each([
    { ordered: false, seed: 1 },
    { ordered: false, seed: 2 },
    { ordered: true, seed: 3 },
    { ordered: true, seed: 4 },
  ])('are found among hundreds of suspects by halving, and they alone are charged: %j', async (options) => {
    await using h = await hazard()
    const fleet = await killedWithFullHands(h, options.ordered, options.seed)
    await liveToTheEnd(h, fleet)
    // At worst once in a group of each size from 64 to 2, and then alone as often as it may.
    expect(fleet.crashes).toBeLessThanOrEqual(6 + 2)
    expect(await deadOnes(h)).toEqual([POISON])
    const { rows } = await h.db.pool.query(
      `select status, attempt_count, last_error_code, count(*)::int from outbox_delivery group by 1, 2, 3 order by 1`,
    )
    expect(rows).toEqual([
      { status: 'DEAD', attempt_count: 2, last_error_code: 'CRASHED', count: 1 },
      { status: 'DONE', attempt_count: 1, last_error_code: null, count: 299 },
    ])
    if (!options.ordered) return
    for (const positions of fleet.delivered.values()) {
      expect(positions).toEqual(positions.toSorted((a, b) => a - b))
    }
  })

  test('take the innocent with them if a crash is charged to everything that was in hand', async () => {
    await using h = await hazard()
    const { store } = h.worker('naive')
    const sub = await join(store, { maxAttempts: 1 })
    await publish(h.db.pool, ['innocent 1', POISON, 'innocent 2'])
    await claim(store, sub, 'w')
    // What a recovery does that only asks whether attempts are left.
    await h.db.pool.query(
      withLetters(`update outbox_delivery set status = case when attempt_count >= max_attempts then 'DEAD' else 'PENDING' end,
              held = attempt_count < max_attempts, last_error_code = 'CRASHED',
              next_retry_at = case when attempt_count < max_attempts then now() end,
              locked_by = null, locked_until = null, lease_token = null
        where status = 'PROCESSING'`),
    )
    expect(await deadOnes(h)).toEqual(['innocent 1', 'innocent 2', POISON])
  })

  test('are never found out if attempts are counted only when a handler returns', async () => {
    await using h = await hazard()
    const { store } = h.worker('naive')
    await join(store, { maxAttempts: 1 })
    await publish(h.db.pool, [POISON])
    for (let crash = 0; crash < 5; crash += 1) {
      const { rowCount } = await h.db.pool.query(
        `update outbox_delivery set status = 'PROCESSING', fresh = false, held = false, next_retry_at = null, locked_by = 'w',
                locked_until = now(), lease_token = nextval('outbox_lease_token') where status = 'PENDING'`,
      )
      expect(rowCount, 'it is claimed again and again').toBe(1)
      await h.db.pool.query(
        `update outbox_delivery set status = 'PENDING', fresh = false, held = true, next_retry_at = now(), locked_by = null,
                locked_until = null, lease_token = null`,
      )
    }
    expect(await one(h.db.pool, 'select attempt_count from outbox_delivery')).toBe(0)
  })
})
