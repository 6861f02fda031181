import { describe, expect, test } from 'vitest'
import type { HeldLane } from '../../src/store/queue-store.ts'
import { beat, claimLanes, DONE, join, settled, takeLanes } from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { positions, runAll, type Scene, scene, takeOverByHand } from './lane-scene.ts'
import { type Hazard, hazard, lapse, publish } from './support.ts'

const statuses = ({ h }: Scene): Promise<string[]> =>
  column(h.db.pool, 'select status from outbox_delivery order by id')

describe('an owner of a lane that stops while another takes it over', () => {
  test('before it claims: its claim gets nothing', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const hold = s.zombie.pool.holdBefore(/for update nowait/)
    const claiming = claimLanes(s.zombie.store, s.sub, 'w1', s.lanes)
    await hold.reached
    await lapse(h.db, 'w1')
    const lanes = await takeLanes(s.heir.store, s.sub, 'w2')
    hold.go()
    expect(await claiming).toEqual([])
    expect(await runAll(s, lanes)).toEqual(['1', '2', '3'])
  })

  test('while its claim waits for the lane: it gets nothing', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const commit = await takeOverByHand(h)
    const claiming = claimLanes(s.zombie.store, s.sub, 'w1', s.lanes)
    await h.untilBlocked('zombie')
    const lanes = await commit()
    expect(await claiming).toEqual([])
    expect(await runAll(s, lanes)).toEqual(['1', '2', '3'])
  })

  test('in the middle of its claim: the lane cannot be taken until the claim is over, and goes with what it took', async () => {
    await using h = await hazard()
    const s = await scene(h, 3_000)
    const lock = await h.connect('lock')
    await lock.query('begin; select pg_advisory_xact_lock(7)')
    // It would wait for nothing in between: it is made to.
    s.zombie.pool.rewrite = (text) =>
      text.replace(
        'where not (select',
        'where (select r.id is not null from pg_advisory_xact_lock(7)) and not (select',
      )
    const claiming = claimLanes(s.zombie.store, s.sub, 'w1', s.lanes)
    await h.untilBlocked('zombie')
    await eventually('the lease of the lane has lapsed', () =>
      one<boolean>(h.db.pool, 'select until < clock_timestamp() from outbox_lane'),
    )
    expect(await takeLanes(s.heir.store, s.sub, 'w2'), 'the claim holds the lane').toEqual([])
    await lock.query('commit')
    const inHand = await claiming
    const lanes = await takeLanes(s.heir.store, s.sub, 'w2')
    expect(lanes).toHaveLength(1)
    expect(
      (await s.zombie.store.settle(inHand.map((delivery) => settled(delivery, DONE)))).lost,
    ).toHaveLength(inHand.length)
    expect(await runAll(s, lanes)).toEqual(['1', '2', '3'])
  })

  test('between claim and settle: it settles nothing, and the heir runs everything again in order', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const inHand = await claimLanes(s.zombie.store, s.sub, 'w1', s.lanes, 2)
    const hold = s.zombie.pool.holdBefore(/'DONE'/)
    const settling = s.zombie.store.settle(inHand.map((delivery) => settled(delivery, DONE)))
    await hold.reached
    await lapse(h.db, 'w1')
    const lanes = await takeLanes(s.heir.store, s.sub, 'w2')
    hold.go()
    expect((await settling).lost).toHaveLength(2)
    expect(await statuses(s)).toEqual(['PENDING', 'PENDING', 'PENDING'])
    expect(await runAll(s, lanes)).toEqual(['1', '2', '3'])
  })

  test('before it claims, and then takes the lane again itself: a claim from before gets nothing', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const hold = s.zombie.pool.holdBefore(/for update nowait/)
    const claiming = claimLanes(s.zombie.store, s.sub, 'w1', s.lanes)
    await hold.reached
    await lapse(h.db, 'w1')
    const again = await takeLanes(s.heir.store, s.sub, 'w1')
    hold.go()
    expect(await claiming).toEqual([])
    expect(positions(await claimLanes(s.heir.store, s.sub, 'w1', again))).toEqual(['1', '2', '3'])
  })

  /** The heir tries to go on while a handler of the zombie completes the first event in a transaction still open. */
  async function passOpenTransaction(
    h: Hazard,
    rewrite: (text: string) => string,
  ): Promise<readonly string[]> {
    const s = await scene(h)
    s.heir.pool.rewrite = rewrite
    const [first] = await claimLanes(s.zombie.store, s.sub, 'w1', s.lanes, 1)
    const completing = await h.connect('completing')
    await completing.query('begin')
    await completing.query(
      `update outbox_delivery set status = 'DONE', fresh = false, processed_at = now(), locked_by = null, locked_until = null,
              lease_token = null where id = $1 and lease_token = $2`,
      [first?.position, first?.lease.token],
    )
    await h.db.pool.query(`update outbox_lane set until = now() - interval '1 ms'; delete from outbox_worker`)
    const lanes = await takeLanes(s.heir.store, s.sub, 'w2')
    const passed = await claimLanes(s.heir.store, s.sub, 'w2', lanes)
    await completing.query('commit')
    if (lanes.length === 0) {
      expect(await runAll(s, await takeLanes(s.heir.store, s.sub, 'w2'))).toEqual(['2', '3'])
    }
    return positions(passed)
  }

  test('in a transaction that completes a delivery: nothing of its key passes before that has ended', async () => {
    await using h = await hazard()
    expect(await passOpenTransaction(h, (text) => text)).toEqual([])
  })

  test('in such a transaction is passed by an heir that takes what it could not return for settled', async () => {
    await using h = await hazard()
    const takesAll = (text: string): string =>
      text.includes('set owner = null') ? 'select 1 where $1::int is null and $2::smallint[] is null' : text
    expect(await passOpenTransaction(h, takesAll)).toEqual(['2', '3'])
  })
})

test('a lane that cannot be taken yet does not keep a worker from taking another', async () => {
  await using h = await hazard()
  const [zombie, heir] = [h.worker('zombie'), h.worker('heir')]
  const sub = await join(zombie.store, { orderBy: 'aggregate', lanes: 2 })
  await publish(h.db.pool, ['a', 'b', 'c', 'd', 'e', 'f'])
  const lanes = await takeLanes(zombie.store, sub, 'w1')
  const [first] = await claimLanes(zombie.store, sub, 'w1', lanes)
  const completing = await h.connect('completing')
  await completing.query('begin')
  await completing.query('select 1 from outbox_delivery where id = $1 for update', [first?.position])
  // The lane with the open transaction has waited longest.
  await h.db.pool.query(
    `update outbox_lane set until = now() - case when lane = $1 then interval '2 s' else interval '1 s' end`,
    [first?.lane],
  )
  const request = { subscriptionId: sub.id, workerId: 'w2', leaseMs: 60_000 }
  const taken: HeldLane[] = []
  for (let look = 0; look < 3; look += 1) {
    await beat(heir.store, sub, 'w2', [])
    await beat(zombie.store, sub, 'w1', [])
    taken.push(...(await heir.store.takeLanes({ ...request, held: taken })).taken)
  }
  expect(taken.map(({ lane }) => lane)).toEqual(
    lanes.map(({ lane }) => lane).filter((lane) => lane !== first?.lane),
  )
})

test('lanes that an answer that never came gave to a worker need not lapse before it takes them again', async () => {
  await using h = await hazard()
  const s = await scene(h)
  const request = { subscriptionId: s.sub.id, workerId: 'w1', leaseMs: 60_000, held: [] }
  expect((await s.zombie.store.takeLanes(request)).taken).toEqual([])
  expect((await s.zombie.store.takeLanes({ ...request, held: s.lanes, unsure: true })).taken).toEqual([])
  const { taken } = await s.zombie.store.takeLanes({ ...request, unsure: true })
  expect(taken).toHaveLength(1)
  expect(await claimLanes(s.zombie.store, s.sub, 'w1', s.lanes)).toEqual([])
  expect(positions(await claimLanes(s.zombie.store, s.sub, 'w1', taken))).toEqual(['1', '2', '3'])
})

describe('two events of one aggregate and two workers', () => {
  test('U4 go to one worker', async () => {
    await using h = await hazard()
    const s = await scene(h)
    expect(await takeLanes(s.heir.store, s.sub, 'w2')).toEqual([])
    const [one1, two] = await Promise.all([
      claimLanes(s.zombie.store, s.sub, 'w1', s.lanes, 1),
      claimLanes(s.heir.store, s.sub, 'w2', s.lanes, 1),
    ])
    expect(positions(one1)).toEqual(['1'])
    expect(two).toEqual([])
  })

  test('go to both, and the second is done first, when rows are claimed and not lanes', async () => {
    await using h = await hazard()
    await scene(h)
    const claimRow = async (workerId: string): Promise<string> => {
      const { rows } = await h.db.pool.query<{ id: string }>(
        `update outbox_delivery set status = 'PROCESSING', fresh = false, locked_by = $1, locked_until = now() + interval '1 minute',
                lease_token = nextval('outbox_lease_token')
          where id = (select id from outbox_delivery where status = 'PENDING' order by id limit 1
                         for update skip locked) returning id`,
        [workerId],
      )
      return rows[0]?.id ?? ''
    }
    expect(await claimRow('w1')).toBe('1')
    expect(await claimRow('w2')).toBe('2')
  })

  test('go to both when the owner of a lane only looks whether it owns it before it claims', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const owned = await one<boolean>(h.db.pool, `select owner = 'w1' and until > now() from outbox_lane`)
    await lapse(h.db, 'w1')
    const lanes = await takeLanes(s.heir.store, s.sub, 'w2')
    expect(positions(await claimLanes(s.heir.store, s.sub, 'w2', lanes, 1))).toEqual(['1'])
    const { rows } = await h.db.pool.query<{ id: string }>(
      `update outbox_delivery set status = 'PROCESSING', fresh = false, locked_by = 'w1', locked_until = now() + interval '1 minute',
              lease_token = nextval('outbox_lease_token')
        where $1 and id = (select min(id) from outbox_delivery where status = 'PENDING') returning id`,
      [owned],
    )
    expect(positions(rows.map(({ id }) => ({ position: id })))).toEqual(['2'])
  })

  test('are never claimed twice by claims of one owner that run at the same time', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const lock = await h.connect('lock')
    await lock.query('begin; select 1 from outbox_lane for update')
    const first = claimLanes(s.zombie.store, s.sub, 'w1', s.lanes)
    await h.untilBlocked('zombie')
    const second = claimLanes(s.heir.store, s.sub, 'w1', s.lanes)
    await h.untilBlocked('heir')
    await lock.query('commit')
    expect([...(await first), ...(await second)].map(({ position }) => position)).toEqual(['1', '2', '3'])
  })
})
