import pg from 'pg'
import type {
  Catalogue,
  Clock,
  EventName,
  Logger,
  Middleware,
  Outbox,
  OutboxOptions,
  PayloadInput,
  PublishInput,
  Relay,
  Subscription,
  Transaction,
  Worker,
  WorkerEvent,
  WorkerOptions,
} from '../../src/index.ts'
import { createOutbox } from '../../src/outbox.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { comes } from '../support/patience.ts'

type Told<Kind extends WorkerEvent['kind']> = Extract<WorkerEvent, { readonly kind: Kind }>
type Rows<Row> = Promise<Row[]>

/** One line of `outbox_delivery`, as far as the tests look at it. */
export interface DeliveryRow {
  readonly status: string
  readonly attempt_count: number
  readonly max_attempts: number
  readonly next_retry_at: Date | null
  readonly last_attempt_at: Date | null
  readonly locked_by: string | null
  readonly locked_until: Date | null
  readonly last_error_code: string | null
  readonly last_error_message: string | null
  readonly created_at: Date
  readonly updated_at: Date
  readonly processed_at: Date | null
}

/** What a system is opened with: its own tables, and what its outbox is to use in place of the defaults. */
export interface SystemOptions<C extends Catalogue>
  extends Pick<
    OutboxOptions<C, Transaction>,
    'clock' | 'random' | 'logger' | 'ambientHeaders' | 'metrics' | 'tracing' | 'sensitive'
  > {
  /** DDL of the system's own tables. */
  readonly tables?: string
}

/** A system of one of the seeds: its own tables and an outbox in a schema of its own, on the real server. */
export class System<C extends Catalogue> implements AsyncDisposable {
  readonly outbox: Outbox<C, Transaction>
  /** Everything all workers told, in order. */
  readonly told: WorkerEvent[] = []
  readonly #database: TestDatabase
  readonly #events: C
  readonly #options: SystemOptions<C>
  readonly #workers: Worker[] = []
  readonly #pools: pg.Pool[] = []

  constructor(database: TestDatabase, events: C, options: SystemOptions<C>) {
    this.#database = database
    this.#events = events
    this.#options = options
    this.outbox = this.#newOutbox(database.pool)
  }

  get pool(): pg.Pool {
    return this.#database.pool
  }

  get schema(): string {
    return this.#database.schema
  }

  /** Leads to the schema. */
  get url(): string {
    return this.#database.url
  }

  /** Starts a worker and waits until its subscriptions have joined. It is stopped with the system. */
  run(
    subscriptions: readonly (Subscription<C, Transaction> | Relay)[],
    options: WorkerOptions = {},
  ): Promise<Worker> {
    return this.#start(this.outbox, subscriptions, options)
  }

  /** The same as from another process: an outbox, a store and connections of its own. */
  runElsewhere(
    subscriptions: readonly (Subscription<C, Transaction> | Relay)[],
    options: WorkerOptions = {},
  ): Promise<Worker> {
    return this.#start(this.newProcess(), subscriptions, options)
  }

  /** An outbox as another process would have it. */
  newProcess(): Outbox<C, Transaction> {
    return this.#newOutbox(this.newPool(), { ...systemClock })
  }

  /** A pool of its own on the same schema, closed with the system. */
  newPool(): pg.Pool {
    const pool = new pg.Pool({ connectionString: this.#database.url, max: 4 })
    pool.on('error', () => undefined)
    this.#pools.push(pool)
    return pool
  }

  /** Publishes one event in a transaction of its own. */
  publish<Name extends EventName<C>>(
    name: Name,
    input: PublishInput<PayloadInput<C, Name>>,
  ): Promise<string> {
    return this.outbox.inTransaction(this.pool, (tx) => this.outbox.publish(tx, name, input))
  }

  async rows<Row>(sql: string, values: readonly unknown[] = []): Rows<Row> {
    return (await this.pool.query(sql, [...values])).rows as Row[]
  }

  /** The first column of the first row. */
  async value<Value>(sql: string, values: readonly unknown[] = []): Promise<Value> {
    const { rows } = await this.pool.query({ text: sql, values: [...values], rowMode: 'array' })
    return (rows as unknown[][])[0]?.[0] as Value
  }

  async count(table: string, where = 'true'): Promise<number> {
    return Number(await this.value(`select count(*) from ${table} where ${where}`))
  }

  /** The delivery of an event; with a name, that of one subscription. */
  async delivery(eventId: string, subscription: string | null = null): Promise<DeliveryRow | undefined> {
    const sql = `select d.* from outbox_delivery d join outbox_subscription s on s.id = d.subscription_id
                  where d.event_id = $1 and s.name = coalesce($2, s.name)`
    return (await this.rows<DeliveryRow>(sql, [eventId, subscription]))[0]
  }

  async untilStatus(eventId: string, status: string, subscription: string | null = null): Promise<void> {
    await eventually(`event ${eventId} is ${status}`, async () => {
      return (await this.delivery(eventId, subscription))?.status === status
    })
  }

  /** Until every delivery has come to its end. */
  async untilSettled(): Promise<void> {
    await eventually('all deliveries are DONE or DEAD', async () => {
      return (await this.count('outbox_delivery', "status not in ('DONE', 'DEAD')")) === 0
    })
  }

  /** Until the lanes of an ordered subscription are divided among so many workers. */
  async untilLanesAreShared(workers: number): Promise<void> {
    await eventually(`${workers} workers own lanes`, async () => {
      return Number(await this.value('select count(distinct owner) from outbox_lane')) === workers
    })
  }

  /** What all workers told of one kind. */
  toldOf<Kind extends WorkerEvent['kind']>(kind: Kind): readonly Told<Kind>[] {
    return this.told.filter((event): event is Told<Kind> => event.kind === kind)
  }

  /** Until a worker told of that: it tells once the result is written, a moment after others may see it. */
  async untilTold(kind: WorkerEvent['kind']): Promise<void> {
    await eventually(`somebody is told: ${kind}`, () => this.toldOf(kind).length > 0)
  }

  /** Lets the pause of everything that waits for its next attempt be over, as the passing of time would. */
  async passRetryDelays(): Promise<void> {
    await this.pool.query(
      `update outbox_delivery set next_retry_at = clock_timestamp()
        where status = 'PENDING' and held and next_retry_at < 'infinity' and next_retry_at > clock_timestamp()`,
    )
    this.outbox.wake()
  }

  /**
   * A worker that takes deliveries and is killed before it says how they ended: its lease is all that is left of it.
   * Returns the ids of the events it had in hand.
   */
  async claimAndVanish(
    subscription: string,
    { limit = 10, leaseMs = 100, workerId = 'vanished-worker' } = {},
  ): Promise<readonly string[]> {
    const id = await this.value<number>('select id from outbox_subscription where name = $1', [subscription])
    const vanishing = postgresStore({ pool: this.pool, schema: this.schema }).openWorker()
    const claimed = await vanishing.claim({ subscriptionId: id, workerId, limit, leaseMs })
    await vanishing.close()
    return claimed.map(({ event }) => event.eventId)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.stop({ drainMs: 0 })))
    await Promise.all(this.#pools.map((pool) => pool.end()))
    await this.#database.drop()
  }

  /** What has a clock of its own counts as a process of its own. */
  #newOutbox(pool: pg.Pool, ownClock: Clock = systemClock): Outbox<C, Transaction> {
    const { tables: _, ...options } = this.#options
    const store = postgresStore({ pool, schema: this.schema })
    return createOutbox({ clock: ownClock, ...options, store, events: this.#events })
  }

  async #start(
    outbox: Outbox<C, Transaction>,
    subscriptions: readonly (Subscription<C, Transaction> | Relay)[],
    options: WorkerOptions,
  ): Promise<Worker> {
    const record = (event: WorkerEvent): void => void this.told.push(event)
    const observers = [record, ...(options.observers ?? [])]
    const worker = outbox.worker(subscriptions, { housekeepingMs: 50, ...options, observers })
    this.#workers.push(worker)
    await worker.active()
    return worker
  }
}

/** Opens a system: a schema, the outbox's tables and the system's own. */
export async function openSystem<C extends Catalogue>(
  events: C,
  options: SystemOptions<C> = {},
): Promise<System<C>> {
  const database = await createTestDatabaseWithTables()
  if (options.tables !== undefined) await database.pool.query(options.tables)
  return new System(database, events, options)
}

/** For workers that divide lanes: they look for their share three times a lease. */
export const SHARING = { leaseMs: 6_000 } as const

/** Waits for a condition, never for a time. */
export function eventually(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  return comes(what, condition)
}

/** Something that happens once, to be waited for. */
export interface Signal {
  readonly happened: Promise<void>
  happen(): void
}

export function signal(): Signal {
  let happen = (): void => {}
  const happened = new Promise<void>((resolve) => {
    happen = resolve
  })
  return { happened, happen: () => happen() }
}

/** One line that was logged. */
export interface LoggedLine {
  readonly level: keyof Logger
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

/** A logger that remembers. */
export function recordingLogger(): { readonly logger: Logger; readonly lines: readonly LoggedLine[] } {
  const lines: LoggedLine[] = []
  const line = (level: keyof Logger) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...fields }, message })
  const logger = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
  return { logger, lines }
}

/**
 * Delivers every event so many times: the handler has done and committed its work, but the worker never learns of it,
 * as when it is cut off at that moment.
 */
export function deliveredTimes(times: number): Middleware {
  return (next) => async (event, ctx) => {
    await next(event, ctx)
    if (ctx.attempt < times) throw new Error('the connection broke before the result was known')
  }
}

/** What a promise was rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { readonly code?: string }> {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('Expected a rejection')
}
