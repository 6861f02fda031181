import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { NewEvent } from '../../event/event.ts'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import { InvalidOptionsError } from '../../runtime/errors.ts'
import { property } from '../../runtime/property.ts'
import type { DeadLetter, DeadLetterQuery } from '../dead-letter-store.ts'
import type { SubscriptionStatus } from '../inspect-store.ts'
import type { OnDuplicate } from '../publish-store.ts'
import type { OutboxStore, WorkerStore } from '../store.ts'
import type { RegisteredSubscription } from '../subscription-store.ts'
import type { Transaction } from '../transaction.ts'
import { assertInTransaction } from './assert-in-transaction.ts'
import type { PgPool } from './client.ts'
import { completeInTransaction } from './complete-in-transaction.ts'
import { countDeadLetters } from './count-dead-letters.ts'
import { countEvents } from './count-events.ts'
import { findDeadLetter } from './find-dead-letter.ts'
import { DEFAULT_SCHEMA, type QuotedSchema, quoteSchema } from './identifiers.ts'
import { insertEvents } from './insert-events.ts'
import { listDeadLetters } from './list-dead-letters.ts'
import { recordOnce } from './record-once.ts'
import { resolveDeadLetter } from './resolve-dead-letter.ts'
import { retryDeadLetter } from './retry-dead-letter.ts'
import { setPaused } from './set-paused.ts'
import { siblingPool } from './sibling-pool.ts'
import { subscriptionStatuses } from './subscription-statuses.ts'
import { notify } from './wake-channel.ts'
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
  if (typeof property(options?.pool, 'connect') !== 'function') {
    throw new InvalidOptionsError('postgresStore', ['pool must be a pool of clients, such as new pg.Pool()'])
  }
  const schema = quoteSchema(options.schema ?? DEFAULT_SCHEMA)
  return new PostgresStore(options.pool, schema, options.clock ?? systemClock)
}

class PostgresStore implements OutboxStore<Transaction> {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock

  constructor(pool: PgPool, schema: QuotedSchema, clock: Clock) {
    this.#pool = pool
    this.#schema = schema
    this.#clock = clock
  }

  insertEvents(
    tx: Transaction,
    events: readonly NewEvent[],
    options: { readonly onDuplicate: OnDuplicate },
  ): Promise<{ readonly inserted: number }> {
    return insertEvents(tx, this.#schema, events, options)
  }

  assertInTransaction(tx: Transaction): Promise<void> {
    return assertInTransaction(tx)
  }

  recordOnce(tx: Transaction, subscription: string, eventId: string): Promise<boolean> {
    return recordOnce(tx, this.#schema, subscription, eventId)
  }

  completeInTransaction(tx: Transaction, delivery: ClaimedDelivery): Promise<void> {
    return completeInTransaction(tx, this.#schema, delivery)
  }

  listDeadLetters(query: DeadLetterQuery): Promise<readonly DeadLetter[]> {
    return listDeadLetters(this.#pool, this.#schema, query)
  }

  countDeadLetters(query: Omit<DeadLetterQuery, 'before' | 'limit'>): Promise<number> {
    return countDeadLetters(this.#pool, this.#schema, query)
  }

  findDeadLetter(id: string): Promise<DeadLetter | null> {
    return findDeadLetter(this.#pool, this.#schema, id)
  }

  retryDeadLetter(id: string, operator: string, note: string | null): Promise<void> {
    return retryDeadLetter(this.#pool, this.#schema, id, operator, note)
  }

  resolveDeadLetter(id: string, operator: string, note: string | null): Promise<void> {
    return resolveDeadLetter(this.#pool, this.#schema, id, operator, note)
  }

  subscriptionStatuses(): Promise<readonly SubscriptionStatus[]> {
    return subscriptionStatuses(this.#pool, this.#schema)
  }

  countEvents(): Promise<number> {
    return countEvents(this.#pool, this.#schema)
  }

  setPaused(
    name: string,
    paused: boolean,
    operator: string,
    note: string | null = null,
  ): Promise<RegisteredSubscription> {
    return setPaused(this.#pool, this.#schema, name, paused, operator, note)
  }

  notifyWorkers(): Promise<void> {
    return notify(this.#pool, this.#schema)
  }

  openWorker(): WorkerStore {
    // Whatever breaks an idle connection is met again, and reported, by the next statement.
    const connections = siblingPool(this.#pool, () => undefined)
    return new PostgresWorkerStore(connections, this.#schema, this.#clock)
  }
}
