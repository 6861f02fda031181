import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { claim as claimBetween } from '../../src/store/postgres/claim.ts'
import { ERA, LowWater, type LowWaterBound, UNBOUNDED } from '../../src/store/postgres/low-water.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { DONE, join, LEASE_MS, settled } from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { PublisherLoad } from './publisher-load.ts'
import { type Hazard, hazard, publish, type SteppedWorker } from './support.ts'

const SEED = 7

/** Claims below a bound that the test chooses and settles everything at once. Returns the event ids in order. */
async function drain(
  h: Hazard,
  { pool, store }: SteppedWorker,
  sub: RegisteredSubscription,
  bound: LowWaterBound,
): Promise<readonly { readonly eventId: string; readonly position: string }[]> {
  const request = { subscriptionId: sub.id, workerId: 'w', limit: 100, leaseMs: LEASE_MS }
  const claimed = await claimBetween(pool, h.db.quoted, request, bound, 25)
  await store.settle(claimed.map((delivery) => settled(delivery, DONE)))
  return claimed.map(({ event, position }) => ({ eventId: event.eventId, position }))
}

/** The real bound, refreshed at every question, and without the pass that now and then looks everywhere. */
function realBound(
  h: Hazard,
  { pool }: SteppedWorker,
  sub: RegisteredSubscription,
): () => Promise<LowWaterBound> {
  const clock = new ManualClock()
  const lowWater = new LowWater(pool, h.db.quoted, sub.id, clock)
  let asked = 0
  return async () => {
    await clock.advance(1_000)
    lowWater.claimed(1)
    asked += 1
    if (asked % 5 === 0) expect(await lowWater.next()).toBe(UNBOUNDED)
    return lowWater.next()
  }
}

/** The bound somebody would take who forgets that commits come in another order than positions. */
function naiveBound(era: string): {
  readonly next: () => Promise<LowWaterBound>
  passed(position: string): void
} {
  let position = 0n
  return {
    next: () => Promise.resolve({ ...UNBOUNDED, position: String(position + 1n), era }),
    passed(claimed) {
      if (BigInt(claimed) > position) position = BigInt(claimed)
    },
  }
}

/** Claims while publishers run, then until nothing is found any more. Returns what was claimed, and what is left. */
async function drainUnderLoad(h: Hazard, kind: 'real' | 'naive') {
  const worker = h.worker('w')
  const sub = await join(worker.store)
  const naive = naiveBound(await one<string>(h.db.pool, `select ${ERA} from outbox_subscription s`))
  const next = kind === 'real' ? realBound(h, worker, sub) : naive.next
  const load = new PublisherLoad(h, SEED)
  await load.start()
  const claimed: string[] = []
  const bounds = new Set<string>()
  const drainOnce = async (): Promise<number> => {
    const bound = await next()
    bounds.add(bound.position)
    const found = await drain(h, worker, sub, bound)
    for (const { eventId, position } of found) {
      claimed.push(eventId)
      naive.passed(position)
    }
    return found.length
  }
  while (load.published.length < 800) await drainOnce()
  await load.stop()
  while ((await drainOnce()) > 0);
  const published = load.published.map(({ eventId }) => eventId)
  return { claimed, published, bounds, stranded: published.filter((eventId) => !claimed.includes(eventId)) }
}

describe('a claim that begins at the low-water bound', () => {
  test('finds every event of publishers that commit late, each once', async () => {
    await using h = await hazard()
    const { claimed, published, bounds } = await drainUnderLoad(h, 'real')
    expect(claimed.toSorted()).toEqual(published.toSorted())
    expect(bounds.size, 'the bound moved').toBeGreaterThan(10)
  })

  test('strands late commits when the bound is the last position claimed', async () => {
    await using h = await hazard()
    const { stranded } = await drainUnderLoad(h, 'naive')
    expect(stranded.length).toBeGreaterThan(0)
  })
})

describe('a bound that is being moved on', () => {
  test('keeps nobody waiting for what was claimed', async () => {
    await using h = await hazard()
    const { store, pool } = h.worker('w')
    const sub = await join(store)
    await publish(h.db.pool, ['a'])
    const moving = pool.holdBefore(/outbox_event_id_seq/)
    const request = { subscriptionId: sub.id, workerId: 'w', limit: 100, leaseMs: LEASE_MS }
    expect(await store.claim(request)).toHaveLength(1)
    await moving.reached
    moving.go()
  })
})

describe('a publisher that has a position but has not inserted yet', () => {
  /** Stops every INSERT when its defaults are evaluated; `assign` is what happens after the stop. */
  async function stopPublishers(h: Hazard, assign: string): Promise<pg.Client> {
    const gate = await h.connect('gate')
    await gate.query('begin; select pg_advisory_xact_lock(4711)')
    await h.db.pool.query(
      `create function stop_here() returns trigger language plpgsql as $$
       begin perform pg_advisory_xact_lock_shared(4711); ${assign} return new; end $$;
       create trigger a_stop before insert on outbox_event for each row execute function stop_here()`,
    )
    return gate
  }

  /**
   * Moves the bound on while the publisher stands there, until it has passed or so many times, then lets it commit.
   * Returns what a claim finds.
   */
  async function passBy(h: Hazard, gate: pg.Client, times: number): Promise<readonly unknown[]> {
    const worker = h.worker('w')
    const sub = await join(worker.store)
    const next = realBound(h, worker, sub)
    // One position in 32, and the first after a checkpoint, gives its transaction an id by itself.
    await h.db.pool.query(`select nextval('outbox_event_id_seq')`)
    const client = await h.connect('publisher')
    const publishing = publish(client, ['late'])
    await h.untilBlocked('publisher')
    const position = await one<string>(h.db.pool, 'select last_value from outbox_event_id_seq')
    for (let step = 0; step < times; step += 1) {
      const bound = await next()
      await drain(h, worker, sub, bound)
      if (BigInt(bound.position) > BigInt(position)) break
    }
    await gate.query('commit')
    await publishing
    return drain(h, worker, sub, await next())
  }

  test('is waited for, because its transaction id was taken before its position', async () => {
    await using h = await hazard()
    expect(await passBy(h, await stopPublishers(h, ''), 20)).toHaveLength(1)
    const columns = `select attname from pg_attribute where attrelid = 'outbox_event'::regclass and attname in ('id', 'xid')
      order by attnum`
    expect(await column(h.db.pool, columns)).toEqual(['xid', 'id'])
  })

  test('is passed by and stranded if the position comes first', async () => {
    await using h = await hazard()
    await h.db.pool.query('alter table outbox_event alter column xid drop default')
    const gate = await stopPublishers(h, 'new.xid := pg_current_xact_id();')
    expect(await passBy(h, gate, 2_000)).toEqual([])
    expect(await one(h.db.pool, `select status from outbox_delivery`)).toBe('PENDING')
  })
})
