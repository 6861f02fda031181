import assert from 'node:assert/strict'
import type { ClaimedDelivery, Settled, Settlement } from '../../../src/delivery/delivery.ts'
import type { HeldLane, LaneDelivery, SuspectClaimRequest } from '../../../src/store/queue-store.ts'
import type { WorkerStore } from '../../../src/store/store.ts'
import type { RegisteredSubscription, SubscriptionDefinition } from '../../../src/store/subscription-store.ts'
import { eventually } from '../../support/program.ts'

export const LEASE_MS = 60_000

/** The subscription of most tests: to everything, from now on, unordered or in four lanes. */
export function definitionOf(overrides: Partial<SubscriptionDefinition> = {}): SubscriptionDefinition {
  const orderBy = overrides.orderBy ?? 'none'
  return {
    name: 'sub',
    streams: null,
    eventTypes: null,
    orderBy,
    lanes: orderBy === 'none' ? 0 : 4,
    onDead: 'block',
    maxAttempts: 3,
    startFrom: 'now',
    ...overrides,
  }
}

/** Registers a subscription and takes it through joining. */
export async function join(
  store: WorkerStore,
  overrides: Partial<SubscriptionDefinition> = {},
): Promise<RegisteredSubscription> {
  const registered = await store.register(definitionOf(overrides))
  await untilActive(store)
  const [active] = await store.subscriptions([registered.id])
  if (active === undefined) throw new Error('the subscription vanished')
  return active
}

/** Other tests on the same server have long transactions, which everything that joins waits for. */
export function untilActive(store: WorkerStore): Promise<void> {
  return eventually('nothing joins', async () => (await store.advanceJoining()).length === 0)
}

export function claim(
  store: WorkerStore,
  subscription: RegisteredSubscription,
  workerId: string,
  limit = 100,
): Promise<readonly ClaimedDelivery[]> {
  return store.claim({ subscriptionId: subscription.id, workerId, limit, leaseMs: LEASE_MS })
}

/** Announces the worker, so that it counts for fair shares, and takes lanes. */
export async function takeLanes(
  store: WorkerStore,
  subscription: RegisteredSubscription,
  workerId: string,
  held: readonly HeldLane[] = [],
): Promise<readonly HeldLane[]> {
  await beat(store, subscription, workerId, [], held)
  const { taken } = await store.takeLanes({
    subscriptionId: subscription.id,
    workerId,
    leaseMs: LEASE_MS,
    held,
  })
  return taken
}

export function beat(
  store: WorkerStore,
  subscription: RegisteredSubscription,
  workerId: string,
  deliveries: readonly ClaimedDelivery[],
  lanes: readonly HeldLane[] = [],
): ReturnType<WorkerStore['heartbeat']> {
  return store.heartbeat({
    workerId,
    subscriptionIds: [subscription.id],
    host: 'test',
    pid: 1,
    leaseMs: LEASE_MS,
    deliveries,
    lanes: lanes.map((lane) => ({ ...lane, subscriptionId: subscription.id })),
  })
}

export function claimLanes(
  store: WorkerStore,
  subscription: RegisteredSubscription,
  workerId: string,
  lanes: readonly HeldLane[],
  limit = 100,
): Promise<readonly LaneDelivery[]> {
  return store.claimLanes({ subscriptionId: subscription.id, workerId, limit, leaseMs: LEASE_MS, lanes })
}

/** Lets go what is parked behind these. */
export function unpark(
  store: WorkerStore,
  subscription: RegisteredSubscription,
  deliveries: readonly LaneDelivery[],
): ReturnType<WorkerStore['unpark']> {
  const keys = deliveries.map(({ lane, key }) => ({ lane, key, most: 100 }))
  return store.unpark(subscription.id, keys)
}

/** The oldest suspect, claimed by itself and marked: if its worker vanishes, it is charged. */
export async function claimAlone(
  store: WorkerStore,
  request: Omit<SuspectClaimRequest, 'limit'>,
): Promise<LaneDelivery | null> {
  const [suspect] = await store.claimSuspects({ ...request, limit: 1 })
  if (suspect === undefined) return null
  assert.equal(await store.markAlone(suspect), true)
  return suspect
}

export const settled = (delivery: ClaimedDelivery, settlement: Settlement): Settled => ({
  delivery,
  settlement,
  durationMs: 1,
})

export const DONE: Settlement = { kind: 'done' }
export const FAILURE = { code: 'BOOM', message: 'it failed' }
export const retryNow: Settlement = { kind: 'retry', delayMs: 0, failure: FAILURE }
export const retryLater: Settlement = { kind: 'retry', delayMs: 3_600_000, failure: FAILURE }
export const dead: Settlement = { kind: 'dead', failure: FAILURE }

export const aggregates = (deliveries: readonly ClaimedDelivery[]): readonly string[] =>
  deliveries.map(({ event }) => event.aggregateId)
