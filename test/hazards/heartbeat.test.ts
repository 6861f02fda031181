import { describe, expect, test } from 'vitest'
import { beat, claim, claimLanes, DONE, retryNow, settled, takeLanes } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { runAll, scene, takeOverByHand } from './lane-scene.ts'
import { hazard, joinPatiently, publish } from './support.ts'

describe('a heartbeat and a take-over at the same time', () => {
  test('the take-over first: the heartbeat waits for nothing, extends nothing, and the next one knows of the loss', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const inHand = await claimLanes(s.zombie.store, s.sub, 'w1', s.lanes, 1)
    const commit = await takeOverByHand(h)
    expect((await beat(s.zombie.store, s.sub, 'w1', inHand, s.lanes)).lostLanes).toEqual([])
    const lanes = await commit()
    expect((await beat(s.zombie.store, s.sub, 'w1', inHand, s.lanes)).lostLanes).toMatchObject([{ lane: 0 }])
    expect(await one(h.db.pool, 'select owner from outbox_lane')).toBe('w2')
    expect(await runAll(s, lanes)).toEqual(['1', '2', '3'])
  })

  test('the heartbeat first: the lane cannot be taken, and afterwards has time again', async () => {
    await using h = await hazard()
    const s = await scene(h, 400)
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
    expect(await beating).toEqual({ lostLanes: [], lostDeliveries: [] })
    expect(await takeLanes(s.heir.store, s.sub, 'w2')).toEqual([])
    expect((await s.zombie.store.settle(inHand.map((delivery) => settled(delivery, DONE)))).lost).toEqual([])
  })
})
