import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../src/runtime/random.ts'
import type { HeldLane } from '../../src/store/queue-store.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { comesToRest } from '../chaos/within.ts'
import { claimLanes, DONE, dead, join, retryLater, settled, takeLanes } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import { KeyRunner } from './key-runner.ts'
import { explain, mostRowsScanned, pages, withLimit } from './plan.ts'
import { asIfHeld, type Hazard, hazard, publish, publishMany, type SteppedWorker } from './support.ts'

const WAITING = 10_000
const LIMIT = 100
const FEW_ROWS = 2 * LIMIT
const FEW_PAGES = 1_500

interface Scene extends SteppedWorker {
  readonly h: Hazard
  readonly sub: RegisteredSubscription
  readonly lanes: readonly HeldLane[]
}

/** A lane in which the first event of key a is dead and blocks the key, and thousands of it follow. */
async function scene(h: Hazard): Promise<Scene> {
  const worker = h.worker('w')
  const sub = await join(worker.store, { orderBy: 'aggregate', lanes: 1 })
  await publish(h.db.pool, ['a'])
  const lanes = await takeLanes(worker.store, sub, 'w')
  const [first] = await claimLanes(worker.store, sub, 'w', lanes)
  if (first === undefined) throw new Error('nothing was claimed')
  await worker.store.settle([settled(first, dead)])
  await publishMany(h, WAITING, `'a'`)
  return { ...worker, h, sub, lanes }
}

/** Claims until every event of the blocked key is parked. */
async function parkAll({ h, store, sub, lanes }: Scene): Promise<void> {
  const fresh = `select count(*)::int from outbox_delivery where status = 'PENDING' and not held`
  while ((await one<number>(h.db.pool, fresh)) > 0) await claimLanes(store, sub, 'w', lanes, 1_000)
  await h.db.pool.query('vacuum analyze outbox_delivery')
}

/** What a claim of the other keys' events reads. */
async function cost(s: Scene, change: (text: string) => string = (text) => text) {
  await claimLanes(s.store, s.sub, 'w', s.lanes, 0)
  const { text, values } = withLimit(s.pool.lastSent(/parked as/), LIMIT)
  const plan = await explain(await s.h.connect('explain'), {
    text: change(text),
    values,
  })
  return { claimed: plan['Actual Rows'], rows: mostRowsScanned(plan), pages: pages(plan) }
}

const others = Array.from({ length: 50 }, (_, n) => `other ${n}`)

describe('ten thousand events that wait behind a blocked key', () => {
  test('are not read by the claims of other keys of their lane', async () => {
    await using h = await hazard()
    const s = await scene(h)
    await parkAll(s)
    await publish(h.db.pool, others)
    const { claimed, rows, pages: read } = await cost(s)
    expect(claimed).toBe(others.length)
    expect(rows).toBeLessThanOrEqual(FEW_ROWS)
    expect(read).toBeLessThan(FEW_PAGES)
  })

  test('are read by every claim if the time is no bound for the index', async () => {
    await using h = await hazard()
    const s = await scene(h)
    await parkAll(s)
    await publish(h.db.pool, others)
    const { claimed, rows } = await cost(s, (text) =>
      text.replace('d.next_retry_at <= (select clock_timestamp())', 'd.next_retry_at <= clock_timestamp()'),
    )
    expect(claimed).toBe(others.length)
    expect(rows).toBeGreaterThanOrEqual(WAITING)
  })

  test('are read by every claim if they are not parked but filtered out', async () => {
    await using h = await hazard()
    const s = await scene(h)
    await publish(h.db.pool, others)
    const plan = await explain(await h.connect('explain'), {
      text: `select d.id from outbox_delivery d
              where d.subscription_id = $1 and d.lane = 0 and d.status = 'PENDING' and not d.held
                and not exists (select 1 from outbox_delivery h
                                 where h.subscription_id = $1 and h.lane = 0 and h.ordering_key = d.ordering_key
                                   and h.held and h.id < d.id)
              order by d.id limit ${LIMIT}`,
      values: [s.sub.id],
    })
    expect(plan['Actual Rows']).toBe(others.length)
    expect(mostRowsScanned(plan)).toBeGreaterThanOrEqual(WAITING)
  })

  test('do not keep a claim from what stands behind them', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await scene(h)
    await publish(h.db.pool, others)
    expect(await claimLanes(store, sub, 'w', lanes, LIMIT)).not.toEqual([])
  })

  test('are not read by the claims of other keys once they were let go and are blocked again', async () => {
    await using h = await hazard()
    const s = await scene(h)
    await parkAll(s)
    await h.db.pool.query(`select outbox_resolve(id, 'kim') from outbox_dead_letter`)
    const [next, ...rest] = await claimLanes(s.store, s.sub, 'w', s.lanes, LIMIT)
    if (next === undefined) throw new Error('nothing was let go')
    await s.store.settle([
      settled(next, retryLater),
      ...rest.map((delivery) => settled(delivery, { kind: 'park' })),
    ])
    await publish(h.db.pool, others)
    const { claimed, rows } = await cost(s)
    expect(claimed).toBe(others.length)
    expect(rows).toBeLessThanOrEqual(FEW_ROWS)
  })
})

test('what is parked behind nothing is found among ten thousand that wait, a page at a time', async () => {
  await using h = await hazard()
  const s = await scene(h)
  await parkAll(s)
  await publish(h.db.pool, ['b'])
  await h.db.pool.query(
    `update outbox_delivery set fresh = false, held = true, next_retry_at = 'infinity' where ordering_key = 'thing:b'`,
  )
  const looks: number[] = []
  for (let look = 0; look < 3; look += 1) {
    await takeLanes(s.store, s.sub, 'w', s.lanes)
    const { text, values } = s.pool.lastSent(/stranded/)
    looks.push(mostRowsScanned(await explain(await h.connect('explain'), { text, values })))
  }
  expect(Math.max(...looks)).toBeLessThanOrEqual(5_000)
  expect((await claimLanes(s.store, s.sub, 'w', s.lanes)).map(({ key }) => key)).toEqual(['thing:b'])
})

describe('an event that is parked in the moment in which what it waits for is resolved', () => {
  /** The claim has seen the dead event, the operator resolves it, and then the claim parks what stands behind it. */
  async function parkTooLate(h: Hazard, rewrite: (text: string) => string): Promise<Scene> {
    const worker = h.worker('w')
    worker.pool.rewrite = (text) => rewrite(asIfHeld(text))
    const sub = await join(worker.store, { orderBy: 'aggregate', lanes: 1 })
    await publish(h.db.pool, ['a'])
    const lanes = await takeLanes(worker.store, sub, 'w')
    const [first] = await claimLanes(worker.store, sub, 'w', lanes)
    if (first === undefined) throw new Error('nothing was claimed')
    await worker.store.settle([settled(first, dead)])
    await publish(h.db.pool, ['a'])
    const lock = await h.connect('lock')
    await lock.query('begin; select 1 from outbox_lane for update')
    const claiming = claimLanes(worker.store, sub, 'w', lanes)
    await h.untilBlocked('w')
    await h.db.pool.query(`select outbox_resolve(id, 'kim') from outbox_dead_letter`)
    await lock.query('commit')
    expect(await claiming).toEqual([])
    expect(await one(h.db.pool, 'select next_retry_at::text from outbox_delivery where id = 2')).toBe(
      'infinity',
    )
    return { ...worker, h, sub, lanes }
  }

  test('is let go when a worker next looks for lanes', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await parkTooLate(h, (text) => text)
    await takeLanes(store, sub, 'w', lanes)
    const [second] = await claimLanes(store, sub, 'w', lanes)
    expect(second?.position).toBe('2')
    if (second !== undefined) await store.settle([settled(second, DONE)])
  })

  test('stays parked for ever if nobody looks for what is parked behind nothing', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await parkTooLate(h, (text) =>
      text.includes('stranded') ? 'select $1::int, $2::int, $3::int, $4::int' : text,
    )
    for (let round = 0; round < 5; round += 1) {
      await takeLanes(store, sub, 'w', lanes)
      expect(await claimLanes(store, sub, 'w', lanes)).toEqual([])
    }
    expect(await one(h.db.pool, 'select status from outbox_delivery where id = 2')).toBe('PENDING')
  })
})

describe('events that are parked while operators decide on what they wait for', () => {
  test('are never stranded, however the decisions fall between the claims', async () => {
    await using h = await hazard()
    const random = seededRandom(5)
    const { store } = h.worker('w')
    const sub = await join(store, { orderBy: 'aggregate', lanes: 4 })
    const keys = Array.from({ length: 12 }, (_, n) => `k${n}`)
    const runner = new KeyRunner({
      store,
      sub,
      onDead: 'block',
      handle: () => (random() < 0.3 ? dead : DONE),
    })
    const unfinished = `select count(*)::int from outbox_delivery where status in ('PENDING', 'PROCESSING') or status = 'DEAD' and held`
    let left: number | null = null
    let isOver = false
    // Neither waits for the other, so that decisions fall into claims.
    const operate = async (): Promise<void> => {
      while (!isOver) {
        await h.db.pool.query(
          `select case when random() < 0.5 then outbox_resolve(id, 'kim') else outbox_retry(id, 'kim') end
             from outbox_dead_letter where not resolved`,
        )
      }
    }
    const work = async (): Promise<void> => {
      for (let round = 1; !isOver; round += 1) {
        if (round <= 15) await publish(h.db.pool, [...keys, ...keys])
        await runner.round(20)
        if (round >= 15) left = await one<number>(h.db.pool, unfinished)
      }
    }
    // What is stranded stays: however slow the machine is, all else becomes less.
    const rest = comesToRest(() => left, PATIENCE_MS).finally(() => {
      isOver = true
    })
    await Promise.all([operate(), work(), rest])
    expect(await one(h.db.pool, unfinished)).toBe(0)
  })
})
