import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import { createDispatcher, type EventDispatcher } from '../../src/dispatch/dispatcher.ts'
import type { DispatcherOptions } from '../../src/dispatch/options.ts'
import type { OutboxEvent } from '../../src/event/event.ts'
import type { Logger } from '../../src/observe/logger.ts'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { LeaseLostError } from '../../src/runtime/errors.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createClassify } from '../../src/settle/classify.ts'

/** An event as it is stored. */
export function someEvent(overrides: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    eventId: '019b76da-a800-7000-8000-000000000001',
    position: '1',
    stream: 'shop.order.event',
    type: 'OrderPlaced',
    schemaVersion: 1,
    aggregateType: 'order',
    aggregateId: '42',
    orderingKey: 'order:42',
    sequence: null,
    payload: { secret: 'never logged' },
    headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    occurredAt: new Date(0),
    createdAt: new Date(0),
    ...overrides,
  }
}

/** What `ctx.complete` throws when it finds nothing to complete. */
export const leaseLost: LeaseLostError = new LeaseLostError({ eventId: 'e', subscription: 's' })

/** A delivery in a worker's hand. */
export function someDelivery(overrides: Partial<ClaimedDelivery> = {}): ClaimedDelivery {
  return {
    subscriptionId: 1,
    lane: 0,
    position: '1',
    lease: { token: '7', workerId: 'w' },
    attempt: 2,
    maxAttempts: 5,
    suspect: false,
    event: someEvent(),
    ...overrides,
  }
}

/** A dispatcher on a manual clock, with everything it says kept. */
export function setup(options: Partial<DispatcherOptions> = {}): {
  readonly dispatcher: EventDispatcher
  readonly clock: ManualClock
  readonly observed: WorkerEvent[]
  readonly lines: { level: string; fields: Record<string, unknown>; message: string }[]
} {
  const clock = new ManualClock()
  const observed: WorkerEvent[] = []
  const lines: { level: string; fields: Record<string, unknown>; message: string }[] = []
  const line = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields: { ...fields }, message })
  }
  const logger: Logger = {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
  }
  const dispatcher = createDispatcher({
    subscription: 'billing',
    handlers: { OrderPlaced: () => {} },
    classify: createClassify(clock),
    clock,
    logger,
    observer: (event) => observed.push(event),
    timeoutMs: 1_000,
    ...options,
  })
  return { dispatcher, clock, observed, lines }
}

/** A promise and the ways to settle it. */
export interface Deferred {
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** A promise that the test settles. */
export function deferred(): Deferred {
  let resolve: () => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}
