import type { MonitorStore } from './alert-store.ts'
import type { DeadLetterStore } from './dead-letter-store.ts'
import type { ExportStore } from './export-store.ts'
import type { GaugeStore } from './gauge-store.ts'
import type { InboxStore } from './inbox-store.ts'
import type { InspectStore } from './inspect-store.ts'
import type { ProofStore } from './proof-store.ts'
import type { PublishStore } from './publish-store.ts'
import type { LaneStore, QueueStore } from './queue-store.ts'
import type { PolicyStore, RedriveStore } from './redrive-store.ts'
import type { RetentionStore } from './retention-store.ts'
import type { StreamStore } from './stream-store.ts'
import type { RetireReport, RetireRequest, SubscriptionStore } from './subscription-store.ts'
import type { Transaction } from './transaction.ts'

/** What a worker uses: connections of its own, so that handlers cannot starve its heartbeat. */
export interface WorkerStore extends QueueStore, LaneStore, SubscriptionStore, PolicyStore {
  /** What reads the database's log, loaded when it is first asked for; null where there is none to read. */
  openStreams(): Promise<StreamStore | null>
  /** Throws SchemaMissingError or SchemaVersionError with the remedy when the tables are missing or of another version. */
  assertReady(): Promise<void>
  /**
   * Calls back whenever somebody says that there may be work. Resolves once it listens or knows that it cannot; each
   * time that it cannot, `onDeaf` is told why, once.
   */
  listen(onWake: () => void, onDeaf: (error: unknown) => void): Promise<WakeSubscription>
  /** Closes the connections. Everything asked for before has been answered. */
  close(): Promise<void>
}

/** A standing request to be woken. */
export interface WakeSubscription {
  /** False when the database cannot wake this worker (behind a pooler, say): polling alone does it. */
  readonly listening: boolean
  close(): Promise<void>
}

/**
 * 2 KEEP: everything Commitpost asks of a database, cut by stage. `Tx` is the transaction handle that publishers and
 * handlers pass in.
 */
export interface OutboxStore<Tx>
  extends PublishStore<Tx>,
    InboxStore<Tx>,
    DeadLetterStore,
    RedriveStore,
    InspectStore,
    GaugeStore,
    ProofStore {
  /** What becomes of events that everybody is done with. */
  readonly retention: RetentionStore
  /** Opens the connections of one worker. */
  openWorker(): WorkerStore
  /** Opens the connections of one monitor. */
  openMonitor(): MonitorStore
  /** What cold exports are made with. Nothing is to be closed. */
  openExports(): ExportStore
  /**
   * Tells workers of other processes that there may be work. Outside any business transaction: `client`, where one is
   * given to be told through, has none open.
   */
  notifyWorkers(client?: Transaction): Promise<void>
  /** Stops or resumes claims of a subscription, for every worker at once. */
  setPaused: SubscriptionStore['setPaused']
  /**
   * Ends a subscription: publishers make no more deliveries for it, and its name can be registered anew.
   * @throws NotFoundError, or INVALID_STATE while workers serve it or deliveries are open, unless the request says so.
   */
  retireSubscription(name: string, request: RetireRequest): Promise<RetireReport>
}
