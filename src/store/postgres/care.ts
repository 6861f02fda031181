import { type Clock, systemClock } from '../../runtime/clock.ts'
import { refuseProblems } from '../../runtime/option-checks.ts'
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
import type { KnownSubscription, SubscriptionStatus } from '../inspect-store.ts'
import type { AuditReport, VerifyReport, VerifyRequest } from '../proof-store.ts'
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
import type { OutboxStore } from '../store.ts'
import type { RegisteredSubscription, RetireReport, RetireRequest } from '../subscription-store.ts'
import type { Transaction } from '../transaction.ts'
import type { PgPool } from './client.ts'
import type { DeadLetterAct } from './close-dead-letter.ts'
import { explained } from './explained.ts'
import { PostgresExportStore } from './export-store.ts'
import { type QuotedSchema, quoteSchema } from './identifiers.ts'
import { PostgresRetentionStore } from './retention-store.ts'
import { storeProblems } from './store-problems.ts'
import { notify, notifyOn } from './wake-channel.ts'

/** What is no part of publishing and delivering. */
export type Care = Omit<
  OutboxStore<Transaction>,
  | 'insertEvents'
  | 'assertInTransaction'
  | 'recordOnce'
  | 'completeInTransaction'
  | 'beginWith'
  | 'commitWith'
  | 'openWorker'
  | 'openMonitor'
>

/** The care of an outbox for a program that neither publishes nor delivers. @throws InvalidOptionsError as `postgresStore` does. */
export function postgresCare(options: { readonly pool: PgPool; readonly schema: string }): PostgresCare {
  refuseProblems('postgresStore', storeProblems(options))
  return new PostgresCare(options.pool, quoteSchema(options.schema), systemClock)
}

/**
 * What people, and whoever looks after an outbox, ask of PostgreSQL. Each operation is loaded when it is first asked for:
 * a process that publishes and delivers needs none of them, a command one or two.
 */
export class PostgresCare implements Care {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock
  readonly retention: RetentionStore

  constructor(pool: PgPool, schema: QuotedSchema, clock: Clock) {
    this.#pool = pool
    this.#schema = schema
    this.#clock = clock
    this.retention = new PostgresRetentionStore(pool, schema)
  }

  listDeadLetters(query: DeadLetterQuery): Promise<readonly DeadLetter[]> {
    return this.#ask('deadLetters.list', async () =>
      (await import('./list-dead-letters.ts')).listDeadLetters(this.#pool, this.#schema, query),
    )
  }

  countDeadLetters(filter: DeadLetterFilter): Promise<number> {
    return this.#ask('deadLetters.count', async () =>
      (await import('./count-dead-letters.ts')).countDeadLetters(this.#pool, this.#schema, filter),
    )
  }

  groupDeadLetters(query: DeadLetterGroupQuery): Promise<readonly DeadLetterGroup[]> {
    return this.#ask('deadLetters.group', async () =>
      (await import('./group-dead-letters.ts')).groupDeadLetters(this.#pool, this.#schema, query),
    )
  }

  blockedKeys(query: BlockedKeyQuery): Promise<readonly BlockedKey[]> {
    return this.#ask('deadLetters.blocked', async () =>
      (await import('./blocked-keys.ts')).blockedKeys(this.#pool, this.#schema, query),
    )
  }

  findDeadLetter(id: string): Promise<DeadLetter | null> {
    return this.#ask('deadLetters.show', async () =>
      (await import('./find-dead-letter.ts')).findDeadLetter(this.#pool, this.#schema, id),
    )
  }

  retryDeadLetter(id: string, operator: string, note: string | null): Promise<void> {
    return this.#close('retry', id, operator, note)
  }

  resolveDeadLetter(id: string, operator: string, note: string | null): Promise<void> {
    return this.#close('resolve', id, operator, note)
  }

  amendDeadLetter(id: string, request: AmendRequest): Promise<void> {
    return this.#ask('deadLetters.amend', async () =>
      (await import('./amend-dead-letter.ts')).amendDeadLetter(this.#pool, this.#schema, id, request),
    )
  }

  purgeDeadLetters(request: PurgeRequest): Promise<number> {
    return this.#ask('deadLetters.purge', async () =>
      (await import('./purge-dead-letters.ts')).purgeDeadLetters(this.#pool, this.#schema, request),
    )
  }

  recordReveal(record: RevealRecord): Promise<void> {
    return this.#ask('deadLetters.reveal', async () =>
      (await import('./record-reveal.ts')).recordReveal(this.#pool, this.#schema, record),
    )
  }

  planRedrive(filter: RedriveFilter): Promise<RedrivePlan> {
    return this.#ask('redrive.plan', async () =>
      (await import('./plan-redrive.ts')).planRedrive(this.#pool, this.#schema, filter),
    )
  }

  redriveProgress(planId: string): Promise<RedriveProgress> {
    return this.#ask('redrive.status', async () =>
      (await import('./redrive-progress.ts')).redriveProgress(this.#pool, this.#schema, planId),
    )
  }

  beginRedrive(planId: string, operator: string, settings: RedriveSettings): Promise<RedriveState> {
    return this.#ask('redrive.apply', async () =>
      (await import('./apply-redrive.ts')).beginRedrive(this.#pool, this.#schema, planId, operator, settings),
    )
  }

  stepRedrive(planId: string, operator: string, note: string | null): Promise<RedriveStep> {
    return this.#ask('redrive.apply', async () =>
      (await import('./apply-redrive.ts')).stepRedrive(this.#pool, this.#schema, planId, operator, note),
    )
  }

  cancelRedrive(planId: string, operator: string, note: string | null): Promise<void> {
    return this.#ask('redrive.cancel', async () =>
      (await import('./apply-redrive.ts')).cancelRedrive(this.#pool, this.#schema, planId, operator, note),
    )
  }

  moveAside(
    subscription: string,
    orderingKey: string,
    operator: string,
    note: string | null,
  ): Promise<MovedAside> {
    return this.#ask('moveAside', async () =>
      (await import('./move-aside.ts')).moveAside(
        this.#pool,
        this.#schema,
        subscription,
        orderingKey,
        operator,
        note,
      ),
    )
  }

  subscriptionStatuses(): Promise<readonly SubscriptionStatus[]> {
    return this.#ask('status', async () =>
      (await import('./subscription-statuses.ts')).subscriptionStatuses(this.#pool, this.#schema),
    )
  }

  knownSubscriptions(): Promise<readonly KnownSubscription[]> {
    return this.#ask('knownSubscriptions', async () =>
      (await import('./known-subscriptions.ts')).knownSubscriptions(this.#pool, this.#schema),
    )
  }

  countEvents(): Promise<number> {
    return this.#ask('countEvents', async () =>
      (await import('./count-events.ts')).countEvents(this.#pool, this.#schema),
    )
  }

  readGauges(limits: GaugeLimits): Promise<Gauges> {
    return this.#ask('metrics', async () =>
      (await import('./read-gauges.ts')).readGauges(this.#pool, this.#schema, limits),
    )
  }

  setPaused(
    name: string,
    paused: boolean,
    operator: string,
    note: string | null = null,
  ): Promise<RegisteredSubscription> {
    return this.#ask(paused ? 'pause' : 'resume', async () =>
      (await import('./set-paused.ts')).setPaused(this.#pool, this.#schema, name, paused, operator, note),
    )
  }

  retireSubscription(name: string, request: RetireRequest): Promise<RetireReport> {
    return this.#ask('retire', async () =>
      (await import('./retire.ts')).retire(this.#pool, this.#schema, name, request),
    )
  }

  verify(request: VerifyRequest): Promise<VerifyReport> {
    return this.#ask('verify', async () =>
      (await import('./verify.ts')).verify(this.#pool, this.#schema, request),
    )
  }

  doctorFacts(limits: DoctorLimits): Promise<DoctorFacts> {
    return this.#ask('doctor', async () =>
      (await import('./doctor-facts.ts')).doctorFacts(this.#pool, this.#schema, this.#clock, limits),
    )
  }

  traceEvent(eventId: string): Promise<EventTrace> {
    return this.#ask('why', async () =>
      (await import('./trace-event.ts')).traceEvent(this.#pool, this.#schema, eventId),
    )
  }

  verifyChains(): Promise<AuditReport> {
    return this.#ask('audit', async () =>
      (await import('./verify-chains.ts')).verifyChains(this.#pool, this.#schema),
    )
  }

  notifyWorkers(client?: Transaction): Promise<void> {
    return client === undefined ? notify(this.#pool, this.#schema) : notifyOn(client, this.#schema)
  }

  openExports(): ExportStore {
    return new PostgresExportStore(this.#pool, this.#schema)
  }

  #close(act: DeadLetterAct, id: string, operator: string, note: string | null): Promise<void> {
    return this.#ask(`deadLetters.${act}`, async () =>
      (await import('./close-dead-letter.ts')).closeDeadLetter(
        this.#pool,
        this.#schema,
        act,
        id,
        operator,
        note,
      ),
    )
  }

  #ask<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    return explained(this.#schema, what, work)
  }
}
