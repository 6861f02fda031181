import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { NewEvent } from '../../event/event.ts'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import { refuseProblems } from '../../runtime/option-checks.ts'
import type { MonitorStore } from '../alert-store.ts'
import type { InsertOptions } from '../publish-store.ts'
import type { OutboxStore, WorkerStore } from '../store.ts'
import type { Transaction } from '../transaction.ts'
import { assertInTransaction } from './assert-in-transaction.ts'
import { beginWith } from './begin-with.ts'
import { PostgresCare } from './care.ts'
import type { PgPool } from './client.ts'
import { commitWith } from './commit-with.ts'
import { completeInTransaction } from './complete-in-transaction.ts'
import { DEFAULT_SCHEMA, type QuotedSchema, quoteSchema } from './identifiers.ts'
import { insertEvents } from './insert-events.ts'
import { openMonitor } from './monitor-store.ts'
import { recordOnce } from './record-once.ts'
import { workerPool } from './sibling-pool.ts'
import { storeProblems } from './store-problems.ts'
import { notifySql } from './wake-channel.ts'
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

class PostgresStore extends PostgresCare implements OutboxStore<Transaction> {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock
  readonly beginWith = beginWith

  constructor(pool: PgPool, schema: QuotedSchema, clock: Clock) {
    super(pool, schema, clock)
    this.#pool = pool
    this.#schema = schema
    this.#clock = clock
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

  commitWith(client: object): ReturnType<typeof commitWith> {
    return commitWith(client, notifySql(this.#schema))
  }

  openWorker(): WorkerStore {
    // Whatever breaks an idle connection is met again, and reported, by the next statement.
    const connections = workerPool(this.#pool, () => undefined)
    return new PostgresWorkerStore(connections, this.#schema, this.#clock, async () => {
      // Most workers read no log.
      const { PostgresStreamStore } = await import('./stream-store.ts')
      return new PostgresStreamStore(connections.pool, this.#pool, this.#schema, this.#clock)
    })
  }

  openMonitor(): MonitorStore {
    return openMonitor(this.#pool, this.#schema)
  }
}
