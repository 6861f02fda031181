import type {
  Observer,
  Subscription,
  SubscriptionOptions,
  Transaction,
  Worker,
  WorkerEvent,
  WorkerOptions,
} from '../../src/index.ts'
import { type FaultDatabase, LEASE_MS } from './fault-database.ts'
import { type PublishedEvent, recordHandled } from './history.ts'
import { comes } from './patience.ts'
import type { StepOutbox, steps } from './steps.ts'

type StepSubscription = Subscription<typeof steps, Transaction>

/** How a subscription of steps differs from the default, and what its handlers do before they write history. */
export interface StepWork extends Omit<SubscriptionOptions<typeof steps, Transaction>, 'on'> {
  readonly before?: (step: PublishedEvent) => Promise<void>
}

/** A worker in this process, with everything it has told. */
export interface StepWorker {
  readonly worker: Worker
  readonly told: readonly WorkerEvent[]
  /** What it has told of one kind. */
  of<Kind extends WorkerEvent['kind']>(kind: Kind): readonly Extract<WorkerEvent, { readonly kind: Kind }>[]
}

/** A worker of steps, whose handlers write history where no fault reaches. Starts nothing. */
export function stepWorker(
  outbox: StepOutbox,
  database: FaultDatabase,
  subscriptions: Readonly<Record<string, StepWork>>,
  options: WorkerOptions = {},
): StepWorker {
  const told: WorkerEvent[] = []
  const observe: Observer = (event) => void told.push(event)
  const workerId = options.workerId ?? 'worker'
  const worker = outbox.worker(
    Object.entries(subscriptions).map(([name, work]) => stepSubscription(name, work, database, workerId)),
    { leaseMs: LEASE_MS, housekeepingMs: 200, listen: false, ...options, workerId, observers: [observe] },
  )
  return {
    worker,
    told,
    of: (kind) => told.filter((event) => event.kind === kind) as never,
  }
}

function stepSubscription(
  name: string,
  { before, ...options }: StepWork,
  { witness, schema }: FaultDatabase,
  worker: string,
): StepSubscription {
  return {
    name,
    options: {
      ...options,
      on: {
        '*': async ({ eventId, aggregateId, payload }) => {
          const { seq } = payload as { readonly seq: number }
          await before?.({ eventId, key: aggregateId, seq })
          await recordHandled(witness, schema, { eventId, key: aggregateId, seq, worker })
        },
      },
    },
  }
}

/** Starts a worker and waits until all its subscriptions are served. */
export async function startAll(...workers: readonly StepWorker[]): Promise<void> {
  await Promise.all(workers.map(({ worker }) => worker.active()))
}

/** Waits until a worker has told so many of a kind. */
export async function tells(worker: StepWorker, kind: WorkerEvent['kind'], count = 1): Promise<void> {
  await comes(`${worker.worker.id} tells ${count} ${kind}`, () => worker.of(kind).length >= count)
}
