import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { NewEvent } from '../../event/event.ts'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import { refuseProblems } from '../../runtime/option-checks.ts'
import type { MonitorStore } from '../alert-store.ts'
import type {
  AmendRequest,
  BlockedKey,
  BlockedKeyQuery,
  DeadLetter,
  DeadLetterFilter,
  DeadLetterGroup,
  DeadLetterGroupQuery,
  DeadLetterQuery,
  PurgeRequest,
  RevealRecord,
} from '../dead-letter-store.ts'
import type { DoctorFacts, DoctorLimits } from '../doctor-facts.ts'
import type { EventTrace } from '../event-trace.ts'
import type { ExportStore } from '../export-store.ts'
import type { GaugeLimits, Gauges } from '../gauge-store.ts'
import type { SubscriptionStatus } from '../inspect-store.ts'
import type { AuditReport, VerifyReport, VerifyRequest } from '../proof-store.ts'
import type { InsertOptions } from '../publish-store.ts'
import type {
  MovedAside,
  RedriveFilter,
  RedrivePlan,
  RedriveProgress,
  RedriveSettings,
  RedriveState,
  RedriveStep,
} from '../redrive-store.ts'
import type { RetentionStore } from '../retention-store.ts'
import type { OutboxStore, WorkerStore } from '../store.ts'
import type { RegisteredSubscription, RetireReport, RetireRequest } from '../subscription-store.ts'
import type { Transaction } from '../transaction.ts'
import { amendDeadLetter } from './amend-dead-letter.ts'
import { beginRedrive, cancelRedrive, stepRedrive } from './apply-redrive.ts'
import { assertInTransaction } from './assert-in-transaction.ts'
import { blockedKeys } from './blocked-keys.ts'
import type { PgPool } from './client.ts'
import { closeDeadLetter, type DeadLetterAct } from './close-dead-letter.ts'
import { commitWith } from './commit-with.ts'
import { completeInTransaction } from './complete-in-transaction.ts'
import { countDeadLetters } from './count-dead-letters.ts'
import { countEvents } from './count-events.ts'
import { doctorFacts } from './doctor-facts.ts'
import { explained } from './explained.ts'
import { PostgresExportStore } from './export-store.ts'
import { findDeadLetter } from './find-dead-letter.ts'
import { groupDeadLetters } from './group-dead-letters.ts'
import { DEFAULT_SCHEMA, type QuotedSchema, quoteSchema } from './identifiers.ts'
import { insertEvents } from './insert-events.ts'
import { listDeadLetters } from './list-dead-letters.ts'
import { PostgresMonitorStore } from './monitor-store.ts'
import { moveAside } from './move-aside.ts'
import { planRedrive } from './plan-redrive.ts'
import { purgeDeadLetters } from './purge-dead-letters.ts'
import { readGauges } from './read-gauges.ts'
import { recordOnce } from './record-once.ts'
import { recordReveal } from './record-reveal.ts'
import { redriveProgress } from './redrive-progress.ts'
import { PostgresRetentionStore } from './retention-store.ts'
import { retire } from './retire.ts'
import { setPaused } from './set-paused.ts'
import { siblingPool } from './sibling-pool.ts'
import { storeProblems } from './store-problems.ts'
import { PostgresStreamStore } from './stream-store.ts'
import { subscriptionStatuses } from './subscription-statuses.ts'
import { traceEvent } from './trace-event.ts'
import { verify } from './verify.ts'
import { verifyChains } from './verify-chains.ts'
import { notify, notifyOn } from './wake-channel.ts'
import { PostgresWorkerStore } from './worker-store.ts'

/** How Commitpost reaches PostgreSQL. */
export interface PostgresStoreOptions {
  /**
   * Your own `pg.Pool`. Workers open a few connections of their own with the same settings, so that busy handlers
   * cannot keep them from extending their leases.
   */
  readonly pool: PgPool
  /**
   * The schema of the tables, as it is: quoting is done here.
   * @default 'commitpost'
   */
  readonly schema?: string
  /** Time, for tests. */
  readonly clock?: Clock
}

/** Keeps events and deliveries in PostgreSQL 14 or later. Opens nothing until it is used. */
export function postgresStore(options: PostgresStoreOptions): OutboxStore<Transaction> {
  refuseProblems('postgresStore', storeProblems(options))
  bearLostConnections(options.pool)
  const schema = quoteSchema(options.schema ?? DEFAULT_SCHEMA)
  return new PostgresStore(options.pool, schema, options.clock ?? systemClock)
}

const borne = new WeakSet<PgPool>()

/** A pool tells of idle connections that broke, as in a restart of the server, and ends the process if nobody listens. */
function bearLostConnections(pool: PgPool): void {
  if (borne.has(pool)) return
  borne.add(pool)
  pool.on?.('error', () => undefined)
}

/** It does one thing after the other, and keeps its turn meanwhile. */
const MONITOR_CONNECTIONS = 2

class PostgresStore implements OutboxStore<Transaction> {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock
  readonly retention: RetentionStore
  readonly commitWith = commitWith

  constructor(pool: PgPool, schema: QuotedSchema, clock: Clock) {
    this.#pool = pool
    this.#schema = schema
    this.#clock = clock
    this.retention = new PostgresRetentionStore(pool, schema)
  }

  insertEvents(
    tx: Transaction,
    events: readonly NewEvent[],
    options: InsertOptions,
  ): Promise<{ readonly inserted: number }> {
    return insertEvents(tx, this.#schema, events, options)
  }

  assertInTransaction(tx: Transaction, operation?: string): Promise<void> {
    return assertInTransaction(tx, operation)
  }

  recordOnce(tx: Transaction, subscription: string, eventId: string): Promise<boolean> {
    return recordOnce(tx, this.#schema, subscription, eventId)
  }

  completeInTransaction(tx: Transaction, delivery: ClaimedDelivery): Promise<void> {
    return completeInTransaction(tx, this.#schema, delivery)
  }

  listDeadLetters(query: DeadLetterQuery): Promise<readonly DeadLetter[]> {
    return this.#ask('deadLetters.list', () => listDeadLetters(this.#pool, this.#schema, query))
  }

  countDeadLetters(filter: DeadLetterFilter): Promise<number> {
    return this.#ask('deadLetters.count', () => countDeadLetters(this.#pool, this.#schema, filter))
  }

  groupDeadLetters(query: DeadLetterGroupQuery): Promise<readonly DeadLetterGroup[]> {
    return this.#ask('deadLetters.group', () => groupDeadLetters(this.#pool, this.#schema, query))
  }

  blockedKeys(query: BlockedKeyQuery): Promise<readonly BlockedKey[]> {
    return this.#ask('deadLetters.blocked', () => blockedKeys(this.#pool, this.#schema, query))
  }

  findDeadLetter(id: string): Promise<DeadLetter | null> {
    return this.#ask('deadLetters.show', () => findDeadLetter(this.#pool, this.#schema, id))
  }

  retryDeadLetter(id: string, operator: string, note: string | null): Promise<void> {
    return this.#close('retry', id, operator, note)
  }

  resolveDeadLetter(id: string, operator: string, note: string | null): Promise<void> {
    return this.#close('resolve', id, operator, note)
  }

  amendDeadLetter(id: string, request: AmendRequest): Promise<void> {
    return this.#ask('deadLetters.amend', () => amendDeadLetter(this.#pool, this.#schema, id, request))
  }

  purgeDeadLetters(request: PurgeRequest): Promise<number> {
    return this.#ask('deadLetters.purge', () => purgeDeadLetters(this.#pool, this.#schema, request))
  }

  recordReveal(record: RevealRecord): Promise<void> {
    return this.#ask('deadLetters.reveal', () => recordReveal(this.#pool, this.#schema, record))
  }

  planRedrive(filter: RedriveFilter): Promise<RedrivePlan> {
    return this.#ask('redrive.plan', () => planRedrive(this.#pool, this.#schema, filter))
  }

  redriveProgress(planId: string): Promise<RedriveProgress> {
    return this.#ask('redrive.status', () => redriveProgress(this.#pool, this.#schema, planId))
  }

  beginRedrive(planId: string, operator: string, settings: RedriveSettings): Promise<RedriveState> {
    return this.#ask('redrive.apply', () =>
      beginRedrive(this.#pool, this.#schema, planId, operator, settings),
    )
  }

  stepRedrive(planId: string, operator: string, note: string | null): Promise<RedriveStep> {
    return this.#ask('redrive.apply', () => stepRedrive(this.#pool, this.#schema, planId, operator, note))
  }

  cancelRedrive(planId: string, operator: string, note: string | null): Promise<void> {
    return this.#ask('redrive.cancel', () => cancelRedrive(this.#pool, this.#schema, planId, operator, note))
  }

  moveAside(
    subscription: string,
    orderingKey: string,
    operator: string,
    note: string | null,
  ): Promise<MovedAside> {
    return this.#ask('moveAside', () =>
      moveAside(this.#pool, this.#schema, subscription, orderingKey, operator, note),
    )
  }

  subscriptionStatuses(): Promise<readonly SubscriptionStatus[]> {
    return this.#ask('status', () => subscriptionStatuses(this.#pool, this.#schema))
  }

  countEvents(): Promise<number> {
    return this.#ask('countEvents', () => countEvents(this.#pool, this.#schema))
  }

  readGauges(limits: GaugeLimits): Promise<Gauges> {
    return this.#ask('metrics', () => readGauges(this.#pool, this.#schema, limits))
  }

  setPaused(
    name: string,
    paused: boolean,
    operator: string,
    note: string | null = null,
  ): Promise<RegisteredSubscription> {
    return this.#ask(paused ? 'pause' : 'resume', () =>
      setPaused(this.#pool, this.#schema, name, paused, operator, note),
    )
  }

  retireSubscription(name: string, request: RetireRequest): Promise<RetireReport> {
    return this.#ask('retire', () => retire(this.#pool, this.#schema, name, request))
  }

  verify(request: VerifyRequest): Promise<VerifyReport> {
    return this.#ask('verify', () => verify(this.#pool, this.#schema, request))
  }

  doctorFacts(limits: DoctorLimits): Promise<DoctorFacts> {
    return this.#ask('doctor', () => doctorFacts(this.#pool, this.#schema, this.#clock, limits))
  }

  traceEvent(eventId: string): Promise<EventTrace> {
    return this.#ask('why', () => traceEvent(this.#pool, this.#schema, eventId))
  }

  verifyChains(): Promise<AuditReport> {
    return this.#ask('audit', () => verifyChains(this.#pool, this.#schema))
  }

  notifyWorkers(client?: Transaction): Promise<void> {
    return client === undefined ? notify(this.#pool, this.#schema) : notifyOn(client, this.#schema)
  }

  openWorker(): WorkerStore {
    // Whatever breaks an idle connection is met again, and reported, by the next statement.
    const connections = siblingPool(this.#pool, () => undefined)
    const streams = new PostgresStreamStore(connections.pool, this.#pool, this.#schema, this.#clock)
    return new PostgresWorkerStore(connections, this.#schema, this.#clock, streams)
  }

  openExports(): ExportStore {
    return new PostgresExportStore(this.#pool, this.#schema)
  }

  openMonitor(): MonitorStore {
    return new PostgresMonitorStore(
      siblingPool(this.#pool, () => undefined, MONITOR_CONNECTIONS),
      this.#schema,
    )
  }

  #close(act: DeadLetterAct, id: string, operator: string, note: string | null): Promise<void> {
    return this.#ask(`deadLetters.${act}`, () =>
      closeDeadLetter(this.#pool, this.#schema, act, id, operator, note),
    )
  }

  #ask<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    return explained(this.#schema, what, work)
  }
}
