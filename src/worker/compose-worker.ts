import type { Catalogue } from '../event/catalogue.ts'
import type { Masking } from '../event/masking.ts'
import { logObserver } from '../observe/log-observer.ts'
import { type Logger, silentLogger } from '../observe/logger.ts'
import type { Meter } from '../observe/meter.ts'
import type { Tracing } from '../observe/tracing.ts'
import { combineObservers, type Observer } from '../observe/worker-events.ts'
import type { EventBus } from '../publish/event-bus.ts'
import type { ResolvedRetention } from '../retain/retention-options.ts'
import { ScheduledRetention } from '../retain/scheduled-retention.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Ids } from '../runtime/ids.ts'
import type { Random } from '../runtime/random.ts'
import type { OutboxStore } from '../store/store.ts'
import { createContextServices } from './context-services.ts'
import { resolveSubscriptions } from './resolve-subscriptions.ts'
import type { Relay, Subscription } from './subscription.ts'
import { tracedSubscriptions } from './traced-subscriptions.ts'
import type { WakeBell } from './wake-bell.ts'
import { createWorker, type Worker } from './worker.ts'
import { workerAlerts } from './worker-alerts.ts'
import { resolveWorkerOptions, type WorkerOptions, workerProblems } from './worker-options.ts'

/** What an outbox is made of, with everything that has a default filled in. */
export interface OutboxParts<C extends Catalogue, Tx> {
  readonly store: OutboxStore<Tx>
  readonly events: C
  readonly masking: Masking
  readonly logger: Logger
  readonly metrics: Meter | undefined
  readonly tracing: Tracing | undefined
  /** Null where there are no policies. */
  readonly retention: ResolvedRetention | null
  readonly clock: Clock
  readonly random: Random
  readonly ids: Ids
}

/** Makes a worker of an outbox, with what watches it: the log, metrics, traces, alerts. */
export function composeWorker<C extends Catalogue, Tx>(
  outbox: OutboxParts<C, Tx>,
  bus: EventBus<C, Tx>,
  bell: WakeBell,
  subscriptions: readonly (Subscription<C, Tx> | Relay)[],
  given: WorkerOptions,
): Worker {
  const { store, events, clock, random, ids, metrics, tracing } = outbox
  // Typed by the catalogue up to here; inside, names and handlers are what they are at run time.
  const untyped = subscriptions as unknown as readonly (Subscription<Catalogue, unknown> | Relay)[]
  const resolved = resolveSubscriptions(events, untyped, workerProblems(given))
  const options = resolveWorkerOptions(given)
  const logger = given.logger ?? outbox.logger
  const id = options.workerId ?? ids.workerId()
  const alerts = workerAlerts({ ...outbox, logger }, options.alerts)
  const observer = combineObservers([
    ...(logger === silentLogger ? [] : [logObserver(logger, outbox.masking)]),
    ...(metrics === undefined ? [] : [metrics.observer]),
    ...options.observers,
    alerts.observer,
  ])
  let hasPublished = false
  return createWorker({
    id,
    openStore: () => store.openWorker(),
    subscriptions: tracedSubscriptions(resolved, tracing, outbox.masking),
    options,
    catalogue: events,
    services: createContextServices({
      store,
      bus: bus as unknown as EventBus<Catalogue, unknown>,
      onPublished: () => {
        hasPublished = true
      },
    }),
    clock,
    random,
    logger,
    observer,
    retention: scheduled(outbox, id, observer),
    openMonitor: () => alerts.open(id, observer),
    onAttemptEnded: () => {
      if (!hasPublished) return
      hasPublished = false
      bell.ring()
    },
    bell,
  })
}

function scheduled<C extends Catalogue, Tx>(
  { store, retention, clock }: OutboxParts<C, Tx>,
  workerId: string,
  observer: Observer,
): ScheduledRetention | null {
  if (retention === null) return null
  return new ScheduledRetention({ store: store.retention, retention, workerId, clock, observer })
}
