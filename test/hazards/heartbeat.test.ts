import { describe, expect, test } from 'vitest'
import {
  beat,
  claim,
  claimLanes,
  DONE,
  join,
  retryNow,
  settled,
  takeLanes,
} from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { runAll, scene, takeOverByHand } from './lane-scene.ts'
import { hazard, publish } from './support.ts'

describe('a heartbeat and a take-over at the same time', () => {
  test('the take-over first: the heartbeat waits for it and reports the lane as lost', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const inHand = await claimLanes(s.zombie.store, s.sub, 'w1', s.lanes, 1)
    const commit = await takeOverByHand(h)
    const beating = beat(s.zombie.store, s.sub, 'w1', inHand, s.lanes)
    await h.untilBlocked('zombie')
    const lanes = await commit()
    expect((await beating).lostLanes).toMatchObject([{ lane: 0 }])
    expect(await one(h.db.pool, 'select owner from outbox_lane')).toBe('w2')
    expect(await runAll(s, lanes)).toEqual(['1', '2', '3'])
  })

  test('the heartbeat first: the lane cannot be taken, and afterwards has time again', async () => {
    await using h = await hazard()
    const s = await scene(h, 3_000)
    const inHand = await claimLanes(s.zombie.store, s.sub, 'w1', s.lanes, 1)
    const lock = await h.connect('lock')
    await lock.query(`begin; select 1 from outbox_worker where worker_id = 'w1' for update`)
    const beating = beat(s.zombie.store, s.sub, 'w1', inHand, s.lanes)
    await h.untilBlocked('zombie')
    await eventually('the lease of the lane would have lapsed', () =>
      one<boolean>(h.db.pool, 'select until < clock_timestamp() from outbox_lane'),
    )
    expect(await takeLanes(s.heir.store, s.sub, 'w2')).toEqual([])
    await lock.query('commit')
    expect(await beating).toEqual({ lostLanes: [], lostDeliveries: [], busyDeliveries: [] })
    expect(await takeLanes(s.heir.store, s.sub, 'w2')).toEqual([])
    expect((await s.zombie.store.settle(inHand.map((delivery) => settled(delivery, DONE)))).lost).toEqual([])
  })
})

describe('a heartbeat and a settle of one worker at the same time', () => {
  test('lose nothing: what is in hand stays in hand until it is settled', async () => {
    await using h = await hazard()
    const [beating, settling] = [h.worker('beating'), h.worker('settling')]
    const sub = await join(beating.store)
    await publish(
      h.db.pool,
      Array.from({ length: 300 }, (_, n) => `a${n}`),
    )
    const inHand = await claim(beating.store, sub, 'w', 300)
    const lost: unknown[] = []
    let left = inHand.length
    const beatOn = async (): Promise<void> => {
      while (left > 0) await beat(beating.store, sub, 'w', inHand)
    }
    const settleOn = async (): Promise<void> => {
      for (const [n, delivery] of inHand.entries()) {
        const settlement = n % 2 === 0 ? DONE : retryNow
        lost.push(...(await settling.store.settle([settled(delivery, settlement)])).lost)
        left -= 1
      }
    }
    await Promise.all([beatOn(), settleOn()])
    expect(lost).toEqual([])
  })

  test('lose results if a settle passes over what is locked', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store)
    await publish(h.db.pool, ['a'])
    const [delivery] = await claim(store, sub, 'w')
    const beating = await h.connect('beating')
    await beating.query('begin')
    await beating.query(`update outbox_delivery set locked_until = now() + interval '1 minute'`)
    const { rowCount } = await h.db.pool.query(
      `update outbox_delivery set status = 'DONE', fresh = false, processed_at = now(), locked_by = null, locked_until = null,
              lease_token = null
        where id = any (array(select id from outbox_delivery where lease_token = $1 for update skip locked))`,
      [delivery?.lease.token],
    )
    await beating.query('commit')
    expect(rowCount).toBe(0)
    expect(await one(h.db.pool, 'select status from outbox_delivery')).toBe('PROCESSING')
  })
})
