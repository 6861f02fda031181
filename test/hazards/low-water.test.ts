import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { claim as claimBetween } from '../../src/store/postgres/claim.ts'
import { ERA, LowWater, type LowWaterBound, UNBOUNDED } from '../../src/store/postgres/low-water.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { DONE, join, LEASE_MS, settled } from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { comes } from '../support/patience.ts'
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
    await lowWater.settled()
    asked += 1
    if (asked % 5 === 0) expect(lowWater.next()).toBe(UNBOUNDED)
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
  // A transaction of whatever else runs on the server keeps the bound where it is, until it ends.
  const isEnough = (): boolean => load.published.length >= 800 && (kind === 'naive' || bounds.size > 10)
  while (!isEnough()) await drainOnce()
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
  test('keeps nobody waiting, neither for what was claimed nor for what comes next', async () => {
    await using h = await hazard()
    const { store, pool } = h.worker('w')
    const sub = await join(store)
    await publish(h.db.pool, ['a'])
    const moving = pool.holdBefore(/outbox_event_id_seq/)
    const request = { subscriptionId: sub.id, workerId: 'w', limit: 100, leaseMs: LEASE_MS }
    expect(await store.claim(request)).toHaveLength(1)
    await moving.reached
    await publish(h.db.pool, ['b'])
    expect(await store.claim(request)).toHaveLength(1)
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
   * Has a publisher come to the stop. One position in 32, and the first after a checkpoint, which every test that copies a
   * database causes, gives its transaction an id by itself: with `withoutId` such a publisher is sent away, for the next one.
   */
  async function stoppedPublisher(
    h: Hazard,
    withoutId: boolean,
  ): Promise<{ readonly publishing: Promise<void> }> {
    for (let n = 1; ; n += 1) {
      const client = await h.connect(`publisher ${n}`)
      const publishing = publish(client, ['late'])
      publishing.catch(() => undefined) // of one that is sent away
      await h.untilBlocked(`publisher ${n}`)
      const sentAway = await column(
        h.db.pool,
        `select pg_terminate_backend(pid, 60000) from pg_stat_activity
          where application_name = $1 and backend_xid is not null and $2`,
        [`${h.db.schema} publisher ${n}`, withoutId],
      )
      if (sentAway.length === 0) return { publishing }
    }
  }

  /** What a claim finds once the publisher has committed, after the bound has been moved on while it stood there. */
  async function passBy(h: Hazard, gate: pg.Client, till: 'it is passed' | '20 steps'): Promise<unknown> {
    const worker = h.worker('w')
    const sub = await join(worker.store)
    const next = realBound(h, worker, sub)
    const { publishing } = await stoppedPublisher(h, till === 'it is passed')
    const position = await one<string>(h.db.pool, 'select last_value from outbox_event_id_seq')
    const step = async (): Promise<boolean> => {
      const bound = await next()
      await drain(h, worker, sub, bound)
      return BigInt(bound.position) > BigInt(position)
    }
    // Until the transactions of other tests that are older have ended, nothing is passed.
    if (till === 'it is passed') await comes('the publisher is passed by', step)
    else for (let n = 0; n < 20; n += 1) expect(await step()).toBe(false)
    await gate.query('commit')
    await publishing
    return drain(h, worker, sub, await next())
  }

  test('is waited for, because its transaction id was taken before its position', async () => {
    await using h = await hazard()
    expect(await passBy(h, await stopPublishers(h, ''), '20 steps')).toHaveLength(1)
    const columns = `select attname from pg_attribute where attrelid = 'outbox_event'::regclass and attname in ('id', 'xid')
      order by attnum`
    expect(await column(h.db.pool, columns)).toEqual(['xid', 'id'])
  })

  test('is passed by and stranded if the position comes first', async () => {
    await using h = await hazard()
    await h.db.pool.query('alter table outbox_event alter column xid drop default')
    const gate = await stopPublishers(h, 'new.xid := pg_current_xact_id();')
    expect(await passBy(h, gate, 'it is passed')).toEqual([])
    expect(await one(h.db.pool, `select status from outbox_delivery`)).toBe('PENDING')
  })
})
