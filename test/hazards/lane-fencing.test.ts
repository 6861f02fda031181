import { describe, expect, test } from 'vitest'
import type { HeldLane, LaneDelivery } from '../../src/store/queue-store.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { beat, claimLanes, DONE, LEASE_MS, settled, takeLanes } from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { type Hazard, hazard, joinPatiently, lapse, publish, type SteppedWorker } from './support.ts'

interface Scene {
  readonly h: Hazard
  readonly sub: RegisteredSubscription
  readonly zombie: SteppedWorker
  readonly heir: SteppedWorker
  readonly lanes: readonly HeldLane[]
}

/** An ordered subscription with one lane, three events of one key, and a worker w1 that owns the lane. */
async function scene(h: Hazard, leaseMs = LEASE_MS): Promise<Scene> {
  const [zombie, heir] = [h.worker('zombie'), h.worker('heir')]
  const sub = await joinPatiently(zombie.store, { orderBy: 'aggregate', lanes: 1 })
  await publish(h.db.pool, ['a', 'a', 'a'])
  await beat(zombie.store, sub, 'w1', [])
  const { taken } = await zombie.store.takeLanes({ subscriptionId: sub.id, workerId: 'w1', leaseMs, held: 0 })
  expect(taken).toHaveLength(1)
  return { h, sub, zombie, heir, lanes: taken }
}

const positions = (deliveries: readonly { readonly position: string }[]): readonly string[] =>
  deliveries.map(({ position }) => position)

const statuses = ({ h }: Scene): Promise<string[]> =>
  column(h.db.pool, 'select status from outbox_delivery order by id')

/** The heir runs everything there is, suspects alone and one after the other. Returns the positions in order. */
async function runAll({ sub, heir }: Scene, lanes: readonly HeldLane[]): Promise<readonly string[]> {
  const ran: string[] = []
  const request = { subscriptionId: sub.id, workerId: 'w2', limit: 10, leaseMs: LEASE_MS, lanes }
  const settle = async (deliveries: readonly LaneDelivery[]): Promise<void> => {
    ran.push(...positions(deliveries))
    expect(await heir.store.settle(deliveries.map((delivery) => settled(delivery, DONE)))).toMatchObject({
      lost: [],
    })
    await heir.store.unpark(
      sub.id,
      deliveries.map(({ lane, key }) => ({ lane, key })),
    )
  }
  for (let found = 1; found > 0; ) {
    const suspect = await heir.store.claimSuspect(request)
    const deliveries = suspect === null ? await heir.store.claimLanes(request) : [suspect]
    await settle(deliveries)
    found = deliveries.length
  }
  return ran
}

/**
 * A take-over by w2 that has been written and not committed, while w1's lease is still good for whoever looks: what a
 * statement of w1 meets that began a moment before its lease ended. Returns the commit.
 */
async function takeOverByHand(h: Hazard): Promise<() => Promise<readonly HeldLane[]>> {
  const client = await h.connect('take-over')
  await client.query(
    `begin;
     update outbox_lane set owner = 'w2', epoch = epoch + 1, until = now() + interval '1 minute';
     update outbox_delivery set status = 'PENDING', held = true, suspect = true, next_retry_at = now(),
            attempt_count = attempt_count - 1, locked_by = null, locked_until = null, lease_token = null
      where status = 'PROCESSING'`,
  )
  return async () => {
    await client.query('commit')
    return [{ lane: 0, epoch: await one<string>(h.db.pool, 'select epoch from outbox_lane') }]
  }
}

describe('an owner of a lane that stops while another takes it over', () => {
  test('before it claims: its claim gets nothing', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const hold = s.zombie.pool.holdBefore(/parked as/)
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
    const s = await scene(h, 400)
    const lock = await h.connect('lock')
    await lock.query('begin; select 1 from outbox_delivery where id = 2 for update')
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

  // Found here: a take-over skips what a settle or the handler's own transaction has locked. Remove `.fails` with the cure.
  test.fails('in a transaction that completes a delivery: nothing of its key passes before that has ended', async () => {
    await using h = await hazard()
    const s = await scene(h)
    const [first] = await claimLanes(s.zombie.store, s.sub, 'w1', s.lanes, 1)
    const completing = await h.connect('completing')
    await completing.query('begin')
    await completing.query(
      `update outbox_delivery set status = 'DONE', processed_at = now(), locked_by = null, locked_until = null,
              lease_token = null where id = $1 and lease_token = $2`,
      [first?.position, first?.lease.token],
    )
    await h.db.pool.query(`update outbox_lane set until = now() - interval '1 ms'; delete from outbox_worker`)
    const lanes = await takeLanes(s.heir.store, s.sub, 'w2')
    const claimed = await claimLanes(s.heir.store, s.sub, 'w2', lanes)
    await completing.query('commit')
    expect(positions(claimed)).toEqual([])
  })
})

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
        `update outbox_delivery set status = 'PROCESSING', locked_by = $1, locked_until = now() + interval '1 minute',
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
      `update outbox_delivery set status = 'PROCESSING', locked_by = 'w1', locked_until = now() + interval '1 minute',
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
