import {
  createOutbox,
  fixed,
  NonRetryableError,
  type Outbox,
  systemClock,
  type Worker,
} from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { Journal } from '../support/journal.ts'
import { lapseLeases, recordLeases } from '../support/leases.ts'
import { eventually } from '../support/program.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { complete, doOnce, type StepContext } from './deeds.ts'
import { knownIds } from './known-ids.ts'
import { catalogue, type Deed, followUp, identityOf, type SceneEvent, toInput } from './scene-events.ts'
import type { SceneSubscription } from './scene-subscription.ts'
import { giveSchemaBack, type SeamSchema, takeSchema } from './schemas.ts'
import { SeamClient } from './seam-client.ts'
import { namingOperations, never, SeamPool } from './seam-pool.ts'

type Steps = typeof catalogue

export const SUBSCRIPTION = 'walkers'
/** Names what handlers fail with until they are mended. */
export const POLICY = { name: 'mended', codes: ['NON_RETRYABLE'], after: 0 } as const
const LANES = 2
const LEASE_MS = 60_000
// The store's own clock only spaces its looks at the low-water bound.
const HURRIED = { ...systemClock, monotonicMs: () => performance.now() * 50 }

/** One process of the application: connections of its own that may end at any statement. */
export interface Process {
  readonly id: string
  readonly pool: SeamPool
  readonly outbox: Outbox<Steps, Transaction>
  readonly worker: Worker
  /** Starts the worker, again when that fails, as a supervisor would. */
  start(): Promise<void>
}

/** A schema, its history, and the processes that come and go on it. */
export class Stage implements AsyncDisposable {
  readonly db: SeamSchema
  readonly subscription: SceneSubscription
  /** Every event that is owed to the subscription. */
  readonly owed: SceneEvent[] = []
  readonly journal: Journal
  /** Which event each amended one stands for. To the history both are the same: one of the two is to be handled, once. */
  readonly standsFor = new Map<string, SceneEvent>()
  /** Those that a person settled by hand: they stay dead. */
  readonly resolved = new Set<string>()
  /** Resolves when the first handler runs; it goes on when the scene says so. */
  gate: { begun(): void; readonly open: Promise<void> } | null = null
  #mended = false
  readonly #failed = new Set<string>()
  readonly #ending: (() => Promise<unknown>)[] = []

  private constructor(db: SeamSchema, subscription: SceneSubscription) {
    this.db = db
    this.subscription = subscription
    this.journal = new Journal(SUBSCRIPTION, subscription.order === 'none' ? 'none' : 'key')
  }

  static async open(subscription: SceneSubscription): Promise<Stage> {
    return new Stage(await takeSchema(), subscription)
  }

  /** A new process that nothing befalls. Nothing of it runs yet. */
  process(id: string): Process {
    const process = this.#process(id, new SeamPool(this.db.bystanders))
    this.#ending.push(() => process.worker.stop())
    return process
  }

  /** One whose connections are its own, and end with it. */
  victim(): Process {
    const application_name = this.#nameOf('victim')
    const pool = new SeamPool(
      sturdyPool({ Client: SeamClient, connectionString: this.db.workerUrl, application_name, max: 4 }),
    )
    const process = this.#process('victim', pool)
    this.#ending.push(() => (pool.dead ? pool.end() : process.worker.stop().then(() => pool.end())))
    return process
  }

  #process(id: string, pool: SeamPool): Process {
    const { order, startFrom = 'now', hasPolicy = false, notify = false } = this.subscription
    const store = namingOperations(postgresStore({ pool, schema: this.db.schema, clock: HURRIED }))
    // What has a clock of its own counts as a process of its own.
    const outbox = createOutbox({
      store,
      events: catalogue,
      notify,
      ids: knownIds,
      clock: { ...systemClock },
    })
    const worker = outbox.worker(
      [
        outbox.subscription(SUBSCRIPTION, {
          on: { StepTaken: (event, ctx) => this.#handle({ id, pool, outbox }, event, ctx) },
          ...(order === 'none' ? {} : { order, lanes: LANES }),
          startFrom,
          ...(hasPolicy && this.#mended ? { redrive: POLICY } : {}),
          maxAttempts: 3,
          retry: fixed(1),
          concurrency: 4,
          // No shorter: six plays at once would have the server claim nothing most of its time.
          pollMs: 150,
          pollMinMs: 40,
        }),
      ],
      { workerId: id, leaseMs: LEASE_MS, housekeepingMs: 80, listen: false, drainMs: 10_000 },
    )
    return { id, pool, outbox, worker, start: () => startPatiently(worker) }
  }

  /** The subscription as registration leaves it, so that a scene can begin with it. */
  async subscribe(eventTypes: readonly string[] = ['StepTaken']): Promise<void> {
    await this.register(eventTypes)
    // Nobody publishes while it joins: there is nothing to wait for, and other tests' transactions are not ours.
    await this.db.pool.query(`update outbox_subscription set state = 'active', generation = generation + 1`)
  }

  /** Registers the subscription, or widens it. */
  async register(eventTypes: readonly string[]): Promise<void> {
    const registrar = postgresStore({ pool: this.db.pool, schema: this.db.schema }).openWorker()
    const { order } = this.subscription
    await registrar.register({
      name: SUBSCRIPTION,
      streams: null,
      eventTypes,
      orderBy: order,
      lanes: order === 'none' ? 0 : LANES,
      onDead: 'block',
      maxAttempts: 3,
      startFrom: 'now',
    })
    await registrar.close()
  }

  /** Publishes in one committed transaction on a connection that nothing befalls. */
  async publish(...batches: readonly (readonly SceneEvent[])[]): Promise<void> {
    const owed = batches.flat()
    const store = postgresStore({ pool: this.db.pool, schema: this.db.schema })
    const outbox = createOutbox({ store, events: catalogue, notify: false })
    const conclude = this.owes(owed)
    await outbox.inTransaction(this.db.pool, (tx) => outbox.publishAll(tx, owed.map(toInput)))
    conclude()
  }

  /** These will have to arrive, and what their handlers publish in turn. Returns how to say that they are committed. */
  owes(owed: readonly SceneEvent[]): () => void {
    this.owed.push(...owed)
    const publication = this.journal.begun(owed.map(identityOf))
    publication.committing()
    const next = owed.filter(({ does }) => does === 'completes').map(followUp)
    if (next.length > 0) this.owes(next)()
    return () => publication.concluded('committed')
  }

  /** A worker that vanished left these in hand; with `suspect`, it ran them alone and for the last time. */
  async leaveBehind(left: readonly SceneEvent[], suspect = false): Promise<void> {
    const eventIds = left.map(({ eventId }) => eventId)
    await this.db.pool.query(
      `update outbox_delivery set status = 'PROCESSING', fresh = false, attempt_count = case when $2 then max_attempts else 1 end,
              suspect = $2, locked_by = 'gone', locked_until = now() - interval '1 s',
              lease_token = nextval('outbox_lease_token')
        where event_id = any ($1)`,
      [eventIds, suspect],
    )
    await recordLeases(this.db.pool)
    await this.db.pool.query(
      `update outbox_lane set owner = 'gone', until = now() - interval '1 s', epoch = epoch + 1`,
    )
  }

  /** What the dead victim had sent is done to its end by the server. */
  async untilVictimIsGone(): Promise<void> {
    await eventually('the connections of the victim are gone', async () => {
      const { rows } = await this.db.pool.query(
        'select 1 from pg_stat_activity where application_name = $1',
        [this.#nameOf('victim')],
      )
      return rows.length === 0
    })
  }

  /** The time of a process that is dead passes on the database's clock. */
  async lapse(worker: string): Promise<void> {
    await lapseLeases(this.db.pool, worker)
  }

  /** Whatever failed before succeeds from now on. */
  mend(): void {
    this.#mended = true
  }

  /** A person is about to settle this one by hand: what waits behind it may go on from here. */
  resolving({ eventId }: SceneEvent): void {
    this.resolved.add(eventId)
    this.journal.setAside(eventId)
  }

  /** Waits until nothing can be done any more without a person. Pauses between attempts are cut short. */
  async drained(): Promise<void> {
    await eventually('everything is settled or waits for a person', async () => {
      await this.db.pool.query(
        `update outbox_delivery set next_retry_at = now()
          where status = 'PENDING' and next_retry_at > now() + interval '100 ms' and next_retry_at < 'infinity'`,
      )
      return !(await this.hasWork())
    })
  }

  async hasWork(): Promise<boolean> {
    const { rows } = await this.db.pool.query(
      `select 1 from outbox_delivery d
        where d.status = 'PROCESSING'
           or d.status = 'PENDING' and not exists (
              select 1 from outbox_delivery h
               where h.subscription_id = d.subscription_id and h.ordering_key = d.ordering_key and h.id < d.id
                 and h.status = 'DEAD' and h.held)
        limit 1`,
    )
    return rows.length > 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ending.map((end) => end()))
    await giveSchemaBack(this.db)
  }

  async #handle(
    { id, pool, outbox }: Pick<Process, 'id' | 'pool' | 'outbox'>,
    event: {
      readonly eventId: string
      readonly aggregateId: string
      readonly payload: { readonly seq: number; readonly does: Deed; readonly next?: string }
    },
    ctx: StepContext,
  ): Promise<void> {
    if (pool.dead) return never()
    const { eventId, aggregateId: key, payload } = event
    const { seq, does } = payload
    await this.#waitAtGate()
    const sight = { worker: id, attempt: ctx.attempt, sequence: null }
    const identity = identityOf(this.standsFor.get(eventId) ?? { eventId, key, seq, does })
    if (this.#fails(eventId, does)) {
      this.journal.seen(identity, sight).failed()
      throw does === 'fails once'
        ? new Error('the first time fails')
        : new NonRetryableError('not mended yet')
    }
    const done = { event: { eventId, key, seq, does }, ctx, at: () => this.journal.tick() }
    if (does === 'once') await doOnce({ id, pool, outbox }, done)
    else if (does === 'completes') await complete({ id, pool, outbox }, done, this.subscription.order)
    else this.journal.handled(identity, sight)
  }

  #fails(eventId: string, does: Deed): boolean {
    if (does === 'dies until mended') return !this.#mended
    if (does !== 'fails once' || this.#failed.has(eventId)) return false
    this.#failed.add(eventId)
    return true
  }

  #nameOf(process: string): string {
    return `${this.db.schema} ${process}`
  }

  async #waitAtGate(): Promise<void> {
    const gate = this.gate
    this.gate = null
    gate?.begun()
    await gate?.open
  }
}

async function startPatiently(worker: Worker): Promise<void> {
  await worker.start().catch(() => worker.start())
  await worker.active()
}
