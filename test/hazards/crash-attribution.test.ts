import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import { type Random, seededRandom } from '../../src/runtime/random.ts'
import type { HeldLane } from '../../src/store/queue-store.ts'
import type { WorkerStore } from '../../src/store/store.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { claim, claimLanes, DONE, LEASE_MS, settled, takeLanes } from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { type Hazard, hazard, joinPatiently, lapse, publish } from './support.ts'

const POISON = 'poison'

/** Worker processes, each of which dies when it runs a poisoned event, and now and then for no reason of an event's. */
class Fleet {
  readonly #h: Hazard
  readonly #store: WorkerStore
  readonly #sub: RegisteredSubscription
  readonly #random: Random
  #processes = 0
  /** Times a process died with something in hand. */
  crashes = 0

  constructor(h: Hazard, store: WorkerStore, sub: RegisteredSubscription, random: Random) {
    this.#h = h
    this.#store = store
    this.#sub = sub
    this.#random = random
  }

  /** The life of one process: it recovers, runs suspects alone and batches together, until it dies or has no work. */
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
    for (;;) {
      const request = { subscriptionId: this.#sub.id, workerId, limit: 1, leaseMs: LEASE_MS, lanes }
      const suspect = await this.#store.claimSuspect(request)
      if (suspect === null) return true
      if (!(await this.#run([suspect], 0))) return false
      await this.#store.unpark(this.#sub.id, [{ lane: suspect.lane, key: suspect.key }])
    }
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
      if (delivery.event.aggregateId.startsWith(POISON) || this.#random() < failsAt) return false
      await this.#store.settle([settled(delivery, DONE)])
    }
    return true
  }
}

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
  const sub = await joinPatiently(store, {
    orderBy: options.ordered ? 'aggregate' : 'none',
    onDead: 'continue',
    maxAttempts: options.maxAttempts,
  })
  const events = Array.from({ length: 30 }, (_, n) =>
    n % 10 === 4 ? `${POISON} ${n}` : `innocent ${n % 12}`,
  )
  await publish(h.db.pool, events)
  const fleet = new Fleet(h, store, sub, random)
  for (let life = 0; (await openDeliveries(h)) > 0; life += 1) {
    expect(life, 'comes to an end').toBeLessThan(200)
    await fleet.live()
    await letTimePass(h)
  }
  return { crashes: fleet.crashes, poison: events.filter((name) => name.startsWith(POISON)) }
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

  test('take the innocent with them if a crash is charged to everything that was in hand', async () => {
    await using h = await hazard()
    const { store } = h.worker('naive')
    const sub = await joinPatiently(store, { maxAttempts: 1 })
    await publish(h.db.pool, ['innocent 1', POISON, 'innocent 2'])
    await claim(store, sub, 'w')
    // What a recovery does that only asks whether attempts are left.
    await h.db.pool.query(
      `update outbox_delivery set status = case when attempt_count >= max_attempts then 'DEAD' else 'PENDING' end,
              held = attempt_count < max_attempts, last_error_code = 'CRASHED',
              next_retry_at = case when attempt_count < max_attempts then now() end,
              locked_by = null, locked_until = null, lease_token = null
        where status = 'PROCESSING'`,
    )
    expect(await deadOnes(h)).toEqual(['innocent 1', 'innocent 2', POISON])
  })

  test('are never found out if attempts are counted only when a handler returns', async () => {
    await using h = await hazard()
    const { store } = h.worker('naive')
    await joinPatiently(store, { maxAttempts: 1 })
    await publish(h.db.pool, [POISON])
    for (let crash = 0; crash < 5; crash += 1) {
      const { rowCount } = await h.db.pool.query(
        `update outbox_delivery set status = 'PROCESSING', held = false, next_retry_at = null, locked_by = 'w',
                locked_until = now(), lease_token = nextval('outbox_lease_token') where status = 'PENDING'`,
      )
      expect(rowCount, 'it is claimed again and again').toBe(1)
      await h.db.pool.query(
        `update outbox_delivery set status = 'PENDING', held = true, next_retry_at = now(), locked_by = null,
                locked_until = null, lease_token = null`,
      )
    }
    expect(await one(h.db.pool, 'select attempt_count from outbox_delivery')).toBe(0)
  })
})
