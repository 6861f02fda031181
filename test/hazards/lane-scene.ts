import { expect } from 'vitest'
import type { HeldLane, LaneDelivery } from '../../src/store/queue-store.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { beat, DONE, join, LEASE_MS, settled, unpark } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { type Hazard, publish, type SteppedWorker } from './support.ts'

/** A worker w1 that is about to lose its lane, and its heir w2. */
export interface Scene {
  readonly h: Hazard
  readonly sub: RegisteredSubscription
  readonly zombie: SteppedWorker
  readonly heir: SteppedWorker
  readonly lanes: readonly HeldLane[]
}

/** An ordered subscription with one lane, three events of one key, and a worker w1 that owns the lane. */
export async function scene(h: Hazard, leaseMs = LEASE_MS): Promise<Scene> {
  const [zombie, heir] = [h.worker('zombie'), h.worker('heir')]
  const sub = await join(zombie.store, { orderBy: 'aggregate', lanes: 1 })
  await publish(h.db.pool, ['a', 'a', 'a'])
  await beat(zombie.store, sub, 'w1', [])
  const { taken } = await zombie.store.takeLanes({
    subscriptionId: sub.id,
    workerId: 'w1',
    leaseMs,
    held: [],
  })
  expect(taken).toHaveLength(1)
  return { h, sub, zombie, heir, lanes: taken }
}

export const positions = (deliveries: readonly { readonly position: string }[]): readonly string[] =>
  deliveries.map(({ position }) => position)

/** The heir runs everything there is, suspects alone and one after the other. Returns the positions in order. */
export async function runAll({ sub, heir }: Scene, lanes: readonly HeldLane[]): Promise<readonly string[]> {
  const ran: string[] = []
  const request = { subscriptionId: sub.id, workerId: 'w2', limit: 10, leaseMs: LEASE_MS, lanes }
  const settle = async (deliveries: readonly LaneDelivery[]): Promise<void> => {
    ran.push(...positions(deliveries))
    expect(await heir.store.settle(deliveries.map((delivery) => settled(delivery, DONE)))).toMatchObject({
      lost: [],
    })
    await unpark(heir.store, sub, deliveries)
  }
  for (let found = 1; found > 0; ) {
    const suspects = await heir.store.claimSuspects({ ...request, limit: 1 })
    const deliveries = suspects.length > 0 ? suspects : await heir.store.claimLanes(request)
    await settle(deliveries)
    found = deliveries.length
  }
  return ran
}

/**
 * A take-over by w2 that has been written and not committed, while w1's lease is still good for whoever looks: what a
 * statement of w1 meets that began a moment before its lease ended. Returns the commit.
 */
export async function takeOverByHand(h: Hazard): Promise<() => Promise<readonly HeldLane[]>> {
  const client = await h.connect('take-over')
  await client.query(
    `begin;
     update outbox_lane set owner = 'w2', epoch = epoch + 1, until = now() + interval '1 minute';
     update outbox_delivery set status = 'PENDING', fresh = false, held = true, suspect = true, next_retry_at = now(),
            attempt_count = attempt_count - 1, locked_by = null, locked_until = null, lease_token = null
      where status = 'PROCESSING'`,
  )
  return async () => {
    await client.query('commit')
    return [{ lane: 0, epoch: await one<string>(h.db.pool, 'select epoch from outbox_lane') }]
  }
}
