import { describe, expect, test } from 'vitest'
import type { Settlement } from '../../src/delivery/delivery.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import type { LaneDelivery } from '../../src/store/queue-store.ts'
import {
  claimLanes,
  DONE,
  dead,
  join,
  retryLater,
  retryNow,
  settled,
  takeLanes,
} from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { KeyRunner } from './key-runner.ts'
import { type Hazard, hazard, publish } from './support.ts'

const RELEASE: Settlement = { kind: 'release', delayMs: 0 }
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']

/** Positions of the key that come before this one and still have to run. */
const unfinishedBefore = ({ db }: Hazard, { key, position }: LaneDelivery): Promise<string[]> =>
  column(
    db.pool,
    `select id from outbox_delivery where ordering_key = $1 and id < $2
        and not (status = 'DONE' or status = 'DEAD' and not held)`,
    [key, position],
  )

/** An operator decides on every open dead letter: one way or the other. */
async function decideDeadLetters({ db }: Hazard, random: () => number): Promise<void> {
  for (const id of await column(db.pool, 'select id from outbox_dead_letter where not resolved')) {
    const act = random() < 0.5 ? 'outbox_retry' : 'outbox_resolve'
    await db.pool.query(`select ${act}($1, 'kim')`, [id])
  }
}

/** Time passes: whatever waits for a time is due. */
const letTimePass = ({ db }: Hazard): Promise<unknown> =>
  db.pool.query(`update outbox_delivery set next_retry_at = clock_timestamp() - interval '1 s'
    where status = 'PENDING' and next_retry_at > now() and next_retry_at < 'infinity'`)

describe.each(['block', 'continue'] as const)('an ordered event that fails, where the dead %s', (onDead) => {
  test('U4 keeps the later events of its key waiting until it is settled, through retries and operators', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const random = seededRandom(onDead === 'block' ? 1 : 2)
    const sub = await join(store, { orderBy: 'aggregate', lanes: 2, onDead })
    const overtaken: unknown[] = []
    const runner = new KeyRunner({
      store,
      sub,
      onDead,
      async handle(delivery) {
        const before = await unfinishedBefore(h, delivery)
        if (before.length > 0) overtaken.push({ position: delivery.position, before })
        const roll = random()
        if (roll < 0.5) return DONE
        if (roll < 0.65) return retryNow
        if (roll < 0.8) return retryLater
        return roll < 0.9 ? RELEASE : dead
      },
    })
    for (let round = 0; round < 60; round += 1) {
      const keys = Array.from({ length: 4 }, () => KEYS[Math.floor(random() * KEYS.length)] as string)
      if (round < 25) await publish(h.db.pool, keys)
      await runner.round(1 + Math.floor(random() * 8))
      if (random() < 0.3) await letTimePass(h)
      // Re-driving what others have passed is the operator's own decision: only where dead ones block is it in order.
      if (onDead === 'block' && random() < 0.3) await decideDeadLetters(h, random)
    }
    expect(overtaken).toEqual([])
    expect(
      await one(h.db.pool, `select count(*)::int from outbox_delivery where status = 'DONE'`),
    ).toBeGreaterThan(20)
  })

  test('lets every other key go on', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store, { orderBy: 'aggregate', lanes: 1, onDead })
    const done: string[] = []
    const runner = new KeyRunner({
      store,
      sub,
      onDead,
      handle(delivery) {
        if (delivery.key === 'thing:a') return retryLater
        done.push(delivery.key)
        return DONE
      },
    })
    await publish(h.db.pool, ['a', 'b', 'a', 'c', 'a', 'b', 'a', 'c'])
    while ((await runner.round(3)) > 0);
    expect(done).toEqual(['thing:b', 'thing:c', 'thing:b', 'thing:c'])
  })
})

describe('retries of a key that are due in another order than they stand', () => {
  /** Gives the events of a key back in an order of the test's own; all are due. Returns what a claim gets then. */
  async function claimAfter(
    h: Hazard,
    order: readonly number[],
    limit: number,
    rewrite: (text: string) => string,
  ): Promise<readonly string[]> {
    const { store, pool } = h.worker('w')
    pool.rewrite = rewrite
    const sub = await join(store, { orderBy: 'aggregate', lanes: 1 })
    await publish(
      h.db.pool,
      order.map(() => 'a'),
    )
    const lanes = await takeLanes(store, sub, 'w')
    const claimed = await claimLanes(store, sub, 'w', lanes)
    for (const position of order) {
      const delivery = claimed[position - 1]
      if (delivery !== undefined) await store.settle([settled(delivery, retryNow)])
    }
    return (await claimLanes(store, sub, 'w', lanes, limit)).map(({ position }) => position)
  }

  const onlyNotYetDue = (text: string): string =>
    text.replace('h.next_retry_at <> d.next_retry_at', 'h.next_retry_at > clock_timestamp()')
  const onlyDueLater = (text: string): string =>
    text.replace('h.next_retry_at <> d.next_retry_at', 'h.next_retry_at > d.next_retry_at')

  test.each([
    [[2, 1], 1],
    [[2, 1, 3], 8],
    [[3, 2, 1], 8],
    [[3, 1, 2], 8],
  ])('U4 are claimed in the order they stand, whatever the limit cuts off: %j', async (order, limit) => {
    await using h = await hazard()
    expect(await claimAfter(h, order, limit, (text) => text)).toEqual(['1'])
  })

  test('are claimed in the wrong order if only what is not due yet is waited for', async () => {
    await using h = await hazard()
    expect(await claimAfter(h, [2, 1], 1, onlyNotYetDue)).toEqual(['2'])
  })

  test('leave one out if only what is due later is waited for', async () => {
    await using h = await hazard()
    expect(await claimAfter(h, [2, 1, 3], 12, onlyDueLater)).toEqual(['1', '3'])
  })

  test('are claimed together when they were given back together', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store, { orderBy: 'aggregate', lanes: 1 })
    await publish(h.db.pool, ['a', 'a', 'a', 'a'])
    const lanes = await takeLanes(store, sub, 'w')
    const claimed = await claimLanes(store, sub, 'w', lanes)
    await store.settle(claimed.toReversed().map((delivery) => settled(delivery, RELEASE)))
    const again = await claimLanes(store, sub, 'w', lanes, 12)
    expect(again.map(({ position }) => position)).toEqual(['1', '2', '3', '4'])
  })
})
