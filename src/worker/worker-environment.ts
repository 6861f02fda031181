import type { ClaimedDelivery } from '../delivery/delivery.ts'
import type { DispatchedDelivery } from '../dispatch/attempt.ts'
import { createDispatcher, type EventDispatcher } from '../dispatch/dispatcher.ts'
import type { ContextServices } from '../dispatch/handler.ts'
import type { Catalogue } from '../event/catalogue.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { Logger } from '../observe/logger.ts'
import type { Observer } from '../observe/worker-events.ts'
import type { LeaseLimits } from '../queue/hand.ts'
import type { Strays } from '../queue/strays.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SoloGate } from '../runtime/gate.ts'
import type { Random } from '../runtime/random.ts'
import { createClassify } from '../settle/classify.ts'
import type { WorkerStore } from '../store/store.ts'
import { noHandlerDelay } from './no-handler.ts'
import type { ResolvedSubscription } from './resolve-subscription.ts'

/** What all subscriptions of one worker share. */
export interface WorkerEnvironment {
  readonly store: WorkerStore
  readonly workerId: string
  readonly limits: LeaseLimits
  readonly catalogue: Catalogue
  readonly services: ContextServices<ClaimedDelivery>
  readonly soloGate: SoloGate
  readonly strays: Strays
  readonly clock: Clock
  /** By which leases are judged. */
  readonly leaseClock: Clock
  readonly random: Random
  readonly observer: Observer
  readonly logger: Logger
  /** Aborts when results that cannot be written are to be given up. */
  readonly giveUp: AbortSignal
  /** Told after every attempt: what it published is committed by now, if it is. */
  onAttemptEnded(): void
}

/** Runs the handlers of a subscription, wherever its events come from. */
export function dispatcherOf<Delivery extends DispatchedDelivery>(
  env: WorkerEnvironment,
  resolved: ResolvedSubscription,
  complete: (delivery: Delivery, tx: unknown) => Promise<void>,
): EventDispatcher<Delivery> {
  const { catalogue, clock, logger, observer, services } = env
  const { definition, handlers, timeoutMs } = resolved
  const dispatcher = createDispatcher<Delivery>({
    subscription: definition.name,
    handlers,
    timeoutMs,
    clock,
    logger,
    observer,
    services: { ...services, complete },
    classify: createClassify(clock, resolved.classify),
    // A type that is not in the catalogue is handed over as stored: for '*', or to be refused for want of a handler.
    reader: { read: (event: OutboxEvent) => catalogue.read(event) ?? event },
    onNoHandler: noHandlerDelay({ definition, catalogue, clock }),
  })
  env.strays.watch(dispatcher)
  return dispatcher
}
