import { describe, expect, test } from 'vitest'
import type { HeldLane } from '../../src/store/queue-store.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import {
  beat,
  claimLanes,
  join,
  retryLater,
  retryNow,
  settled,
  takeLanes,
  unpark,
} from '../store/contract/helpers.ts'
import { lock, lockFirst, waitingForLocks } from './locking.ts'
import { type Hazard, hazard, publish, publishMany, type SteppedWorker } from './support.ts'

interface Scene extends SteppedWorker {
  readonly sub: RegisteredSubscription
  readonly lanes: readonly HeldLane[]
}

/** A worker with all lanes of a subscription, two if nothing else is said. */
async function scene(h: Hazard, lanes = 2): Promise<Scene> {
  const worker = h.worker('w')
  const sub = await join(worker.store, { orderBy: 'aggregate', lanes })
  return { ...worker, sub, lanes: await takeLanes(worker.store, sub, 'w') }
}

describe('a delivery that a person has locked', () => {
  test('is passed over by the claim of its lane, and nothing later of its key goes before it', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await scene(h)
    await publish(h.db.pool, ['a', 'b', 'a', 'c', 'a'])
    const { unlock } = await lockFirst(h)
    const claimed = await claimLanes(store, sub, 'w', lanes)
    expect(claimed.map(({ position }) => position)).toEqual(['2', '4'])
    expect(await beat(store, sub, 'w', claimed, lanes)).toMatchObject({ lostLanes: [], lostDeliveries: [] })
    await unlock()
    const rest = await claimLanes(store, sub, 'w', lanes)
    expect(rest.map(({ position }) => position)).toEqual(['1', '3', '5'])
  })

  const many = (key: string, count: number): string[] => Array.from({ length: count }, () => key)
  const blind = (text: string): string =>
    text.replace('json_agg(distinct t.key) filter (where not t.got)', 'null::json')
  const positionsOf = (claimed: readonly { readonly position: string }[]): string[] =>
    claimed.map(({ position }) => position)

  test('keeps no other key of its lane waiting, however many of its own stand before them', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await scene(h, 1)
    await publish(h.db.pool, [...many('a', 20), 'b', 'a', 'c'])
    const { unlock } = await lockFirst(h)
    expect(positionsOf(await claimLanes(store, sub, 'w', lanes, 5))).toEqual(['21', '23'])
    expect(await claimLanes(store, sub, 'w', lanes, 5)).toEqual([])
    await unlock()
    expect(positionsOf(await claimLanes(store, sub, 'w', lanes, 5))).toEqual(['1', '2', '3', '4', '5'])
  })

  test('keeps them waiting if a claim does not look past the keys that it could not lock', async () => {
    await using h = await hazard()
    const { store, pool, sub, lanes } = await scene(h, 1)
    pool.rewrite = blind
    await publish(h.db.pool, [...many('a', 20), 'b'])
    await lockFirst(h)
    expect(await claimLanes(store, sub, 'w', lanes, 5)).toEqual([])
  })

  test('keeps them waiting no more when the claim finds work elsewhere, as it always does on a busy day', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await scene(h, 1)
    await publish(h.db.pool, ['r', ...many('a', 20), 'b'])
    const [retry] = await claimLanes(store, sub, 'w', lanes, 1)
    if (retry === undefined) throw new Error('nothing was claimed')
    await store.settle([settled(retry, retryNow)])
    await lock(h, 2)
    expect(positionsOf(await claimLanes(store, sub, 'w', lanes, 5))).toEqual(['1', '22'])
  })

  test('is looked past in more than one key, thousands of rows far', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await scene(h, 1)
    await publish(h.db.pool, ['a', 'b', ...many('a', 1_500), ...many('b', 4_500), 'c', 'b', 'd'])
    await lock(h, 1, 2)
    expect(positionsOf(await claimLanes(store, sub, 'w', lanes, 5))).toEqual(['6003', '6005'])
  })

  test('is looked past no farther than a claim can afford', async () => {
    await using h = await hazard()
    const { store, pool, sub, lanes } = await scene(h, 1)
    await publishMany(h, 20_001, `case n when 20001 then 'b' else 'a' end`)
    await lock(h, 1)
    expect(await claimLanes(store, sub, 'w', lanes, 5)).toEqual([])
    expect(pool.sent.filter(({ text }) => text.includes('parked as'))).toHaveLength(2)
  })

  test('keeps no other key waiting where it waits for an earlier one itself', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await scene(h, 1)
    await publish(h.db.pool, [...many('a', 20), 'b'])
    const [first] = await claimLanes(store, sub, 'w', lanes, 1)
    if (first === undefined) throw new Error('nothing was claimed')
    await store.settle([settled(first, retryLater)])
    await lock(h, ...Array.from({ length: 19 }, (_, n) => n + 2))
    expect(positionsOf(await claimLanes(store, sub, 'w', lanes, 5))).toEqual(['21'])
  })

  test('keeps no retry of another key waiting behind those of its own', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await scene(h, 1)
    await publish(h.db.pool, [...many('a', 20), 'b'])
    const claimed = await claimLanes(store, sub, 'w', lanes)
    await store.settle(claimed.map((delivery) => settled(delivery, { kind: 'release', delayMs: 0 })))
    await lockFirst(h)
    expect(positionsOf(await claimLanes(store, sub, 'w', lanes, 5))).toEqual(['21'])
  })

  test('keeps no other key parked, though both are let go together', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await scene(h)
    await publish(h.db.pool, ['b', 'a'])
    const claimed = await claimLanes(store, sub, 'w', lanes)
    await store.settle(claimed.map((delivery) => settled(delivery, { kind: 'park' })))
    const { unlock } = await lockFirst(h)
    await unpark(store, sub, claimed)
    expect((await claimLanes(store, sub, 'w', lanes)).map(({ position }) => position)).toEqual(['2'])
    await unlock()
    await unpark(store, sub, claimed)
    expect((await claimLanes(store, sub, 'w', lanes)).map(({ position }) => position)).toEqual(['1'])
  })

  test('is passed over among retries too', async () => {
    await using h = await hazard()
    const { store, sub, lanes } = await scene(h)
    await publish(h.db.pool, ['a', 'b', 'a', 'a'])
    const claimed = await claimLanes(store, sub, 'w', lanes)
    await store.settle(claimed.map((delivery) => settled(delivery, { kind: 'release', delayMs: 0 })))
    const { unlock } = await lockFirst(h)
    expect((await claimLanes(store, sub, 'w', lanes)).map(({ position }) => position)).toEqual(['2'])
    await unlock()
    expect((await claimLanes(store, sub, 'w', lanes)).map(({ position }) => position)).toEqual([
      '1',
      '3',
      '4',
    ])
  })

  test('stops the claim, and the heartbeat behind it, if the claim waits for it', async () => {
    await using h = await hazard()
    const { store, pool, sub, lanes } = await scene(h)
    pool.rewrite = waitingForLocks
    await publish(h.db.pool, ['a', 'b'])
    const { unlock } = await lockFirst(h)
    const claiming = claimLanes(store, sub, 'w', lanes)
    await h.untilBlocked('w')
    const keeper = h.worker('keeper')
    const beating = beat(keeper.store, sub, 'w', [], lanes)
    await h.untilBlocked('keeper')
    await unlock()
    expect(await claiming).toHaveLength(2)
    expect(await beating).toMatchObject({ lostLanes: [] })
  })

  test('is overtaken if a claim just passes over what is locked', async () => {
    await using h = await hazard()
    const { store, pool, sub, lanes } = await scene(h)
    pool.rewrite = (text) => text.replace('(select bool_and(got) from tried)', 'true')
    await publish(h.db.pool, ['a', 'b', 'a'])
    await lockFirst(h)
    const claimed = await claimLanes(store, sub, 'w', lanes)
    expect(claimed.map(({ position }) => position)).toEqual(['2', '3'])
  })
})

describe('a worker that locks several lanes', () => {
  /** Whether the other lane is free while a statement, asked for lane 1 before lane 0, waits for lane 0. */
  async function isOtherFree(
    h: Hazard,
    rewrite: (text: string) => string,
    act: (scene: Scene, lanes: readonly HeldLane[]) => Promise<unknown>,
  ): Promise<boolean> {
    const s = await scene(h)
    await publish(h.db.pool, ['a', 'b'])
    s.pool.rewrite = rewrite
    const holder = await h.connect('holder')
    await holder.query('begin; select 1 from outbox_lane where lane = 0 for update')
    const acting = act(
      s,
      s.lanes.toSorted((one1, other) => other.lane - one1.lane),
    )
    await h.untilBlocked('w')
    const { rowCount } = await h.db.pool.query(
      'select 1 from outbox_lane where lane = 1 for update skip locked',
    )
    await holder.query('commit')
    await acting
    return rowCount === 1
  }

  const acts = {
    claim: ({ store, sub }: Scene, lanes: readonly HeldLane[]) => claimLanes(store, sub, 'w', lanes),
    heartbeat: ({ store, sub }: Scene, lanes: readonly HeldLane[]) => beat(store, sub, 'w', [], lanes),
    release: ({ store, sub }: Scene, lanes: readonly HeldLane[]) => store.releaseLanes(sub.id, 'w', lanes),
  }
  const names = ['claim', 'heartbeat', 'release'] as const

  test.each(names)('begins with the lowest, so that no two wait for each other: %s', async (name) => {
    await using h = await hazard()
    expect(await isOtherFree(h, (text) => text, acts[name])).toBe(true)
  })

  test.each(names)('holds the one and waits for the other if it goes by its own order: %s', async (name) => {
    await using h = await hazard()
    const unsorted = (text: string): string =>
      text.replaceAll(/\s+order by w\.(?:subscription_id, w\.)?lane\b/g, '')
    expect(await isOtherFree(h, unsorted, acts[name])).toBe(false)
  })
})
