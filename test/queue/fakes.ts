import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import type { OutboxEvent } from '../../src/event/event.ts'
import { Held } from '../../src/queue/hand.ts'
import type { LaneDelivery } from '../../src/store/queue-store.ts'

/** An event as stored. */
export function eventAt(position: number, key = `k${position}`): OutboxEvent<string, { n: number }> {
  return {
    eventId: `00000000-0000-7000-8000-${String(position).padStart(12, '0')}`,
    position: String(position),
    stream: 'test',
    type: 'ThingHappened',
    schemaVersion: 1,
    aggregateType: 'thing',
    aggregateId: key,
    orderingKey: key,
    sequence: null,
    payload: { n: position },
    headers: {},
    occurredAt: new Date(0),
    createdAt: new Date(0),
  }
}

/** A claimed delivery of subscription 1. */
export function deliveryAt(position: number, over: Partial<LaneDelivery> = {}): LaneDelivery {
  const key = over.key ?? `k${position}`
  return {
    subscriptionId: 1,
    lane: 0,
    position: String(position),
    lease: { token: '1', workerId: 'w1' },
    attempt: 1,
    maxAttempts: 5,
    suspect: false,
    event: eventAt(position, key),
    key,
    wasHeld: false,
    ...over,
  }
}

/** A delivery in hand, its lease confirmed at the given time. */
export function heldAt(
  position: number,
  over: Partial<LaneDelivery> = {},
  confirmedAtMs = 0,
): Held<LaneDelivery> {
  return new Held(deliveryAt(position, over), confirmedAtMs)
}

/** The positions of deliveries, as numbers. */
export function positionsOf(
  items: readonly (ClaimedDelivery | { readonly delivery: ClaimedDelivery })[],
): number[] {
  return items.map((item) => Number('delivery' in item ? item.delivery.position : item.position))
}

/** A promise to be settled by the test. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>
  resolve(value: Value): void
  reject(error: unknown): void
}

export function deferred<Value = void>(): Deferred<Value> {
  let resolve: (value: Value) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}

/** Lets everything that is already resolved have its say. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

/** Always the middle: jitter of nothing. */
export const noJitter = (): number => 0.5
