import type { WorkerStore } from '../../src/store/store.ts'
import type { RegisteredSubscription, SubscriptionDefinition } from '../../src/store/subscription-store.ts'
import { claimLanes, DONE, settled, takeLanes, untilActive } from '../store/contract/helpers.ts'
import { type Hazard, publish, type SteppedWorker } from './support.ts'

/** An ordered subscription of these types. */
export const ordered = (...eventTypes: readonly string[]): SubscriptionDefinition => ({
  name: 'sub',
  streams: null,
  eventTypes,
  orderBy: 'aggregate',
  lanes: 1,
  onDead: 'block',
  maxAttempts: 3,
  startFrom: 'now',
})

/** A worker that serves an ordered subscription of old events, while somebody has an older transaction open. */
export interface WideningScene {
  readonly worker: SteppedWorker
  readonly store: WorkerStore
  readonly sub: RegisteredSubscription
  /** Claims what may be claimed, settles it, and returns the events' types and keys in order. */
  readonly serve: () => Promise<readonly string[]>
  readonly endOldTransaction: () => Promise<void>
}

export async function wideningScene(h: Hazard): Promise<WideningScene> {
  const worker = h.worker('worker')
  const { store } = worker
  const sub = await store.register(ordered('Old'))
  await untilActive(store)
  const lanes = await takeLanes(store, sub, 'w')
  const old = await h.connect('old transaction')
  await old.query('begin; select pg_current_xact_id()')
  return {
    worker,
    store,
    sub,
    serve: async () => {
      const claimed = await claimLanes(store, sub, 'w', lanes)
      await store.settle(claimed.map((delivery) => settled(delivery, DONE)))
      return claimed.map(({ event }) => `${event.type} ${event.aggregateId}`)
    },
    endOldTransaction: async () => void (await old.query('commit')),
  }
}

/** Publishes events of these types and one key in turn, each in a transaction of its own. */
export async function publishInTurn(h: Hazard, key: string, ...types: readonly string[]): Promise<void> {
  for (const type of types) await publish(h.db.pool, [key], { type })
}

/** Publishes events of these types and one key in one transaction. Returns its commit. */
export async function publishOpen(
  h: Hazard,
  key: string,
  ...types: readonly string[]
): Promise<() => Promise<void>> {
  const publisher = await h.connect('publisher')
  await publisher.query('begin')
  for (const type of types) await publish(publisher, [key], { type })
  return async () => void (await publisher.query('commit'))
}
