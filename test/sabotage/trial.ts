import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { Clock } from '../../src/runtime/clock.ts'
import { sqlState } from '../../src/runtime/sql-state.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import type { Identity } from '../chaos/checker/entry.ts'
import { type Hazard, hazard, lapse, replaceFunction } from '../hazards/support.ts'
import { insertEvent, one } from '../store/postgres/fixtures.ts'
import { deliveryFaults } from '../support/delivery-faults.ts'
import { anomaliesOf, Journal } from '../support/journal.ts'
import { Actor } from './actor.ts'
import type { Variant } from './variant.ts'

type Client = Pick<pg.Pool | pg.Client, 'query'>

interface Rewrite {
  readonly fragment: RegExp
  readonly replacement: string
  isUsed: boolean
}

export const SUBSCRIPTION = 'sub'

/** One scenario, played with the library as it is or with one thing in it broken. */
export class Trial implements AsyncDisposable {
  readonly h: Hazard
  readonly journal: Journal
  readonly broken: boolean
  readonly order: 'none' | 'aggregate'
  readonly #rewrites: Rewrite[] = []
  readonly #caught = new Set<string>()
  readonly #committed: string[] = []
  #sub: RegisteredSubscription | null = null
  #types: readonly string[] | null

  private constructor(h: Hazard, variant: Variant, broken: boolean) {
    this.h = h
    this.order = variant.order
    this.broken = broken
    this.#types = variant.types ?? null
    this.journal = new Journal(SUBSCRIPTION, this.order === 'none' ? 'none' : 'key', this.#types)
  }

  static async open(variant: Variant, broken: boolean): Promise<Trial> {
    return new Trial(await hazard(), variant, broken)
  }

  get sub(): RegisteredSubscription {
    if (this.#sub === null) throw new Error('register or subscribe first')
    return this.#sub
  }

  /** In the broken form, every statement of every worker that has this fragment is sent without it. */
  rewrite(fragment: RegExp, replacement: string): void {
    if (this.broken) this.#rewrites.push({ fragment, replacement, isUsed: false })
  }

  /** In the broken form, a function of the schema is another. */
  async replaceFunction(name: string, fragment: RegExp, replacement: string): Promise<void> {
    if (!this.broken) return
    await replaceFunction(this.h, name, (definition) => definition.replace(fragment, replacement))
  }

  /** In the broken form, a rule of the schema that would refuse it by itself is not there. */
  async dropTrigger(table: string, name: string): Promise<void> {
    if (!this.broken) return
    await this.h.db.pool.query(`drop trigger ${name} on ${this.h.db.quoted}.${table}`)
  }

  /** A worker that does what it is told, one step at a time. */
  actor(id: string, clock?: Clock): Actor {
    const { store, pool } = this.h.worker(id, clock)
    pool.rewrite = (text) => this.#rewritten(text)
    return new Actor({ id, store, pool, trial: this })
  }

  /** Registers the subscription, as far as that goes without anybody's help. */
  async register(actor: Actor, eventTypes = this.#types): Promise<void> {
    this.#sub = await actor.store.register({
      name: SUBSCRIPTION,
      streams: null,
      eventTypes,
      orderBy: this.order,
      lanes: this.order === 'none' ? 0 : 1,
      onDead: 'block',
      maxAttempts: 3,
      startFrom: 'now',
    })
  }

  /** Registers it with these types besides: they are owed to it from then on. */
  async widen(actor: Actor, ...types: readonly string[]): Promise<void> {
    const wider = [...(this.#types ?? []), ...types]
    await this.register(actor, wider)
    this.#types = wider
    this.journal.takes(types)
  }

  /** An active subscription. Nobody publishes while it joins, so there is nothing to wait for. */
  async subscribe(): Promise<void> {
    await this.register(this.actor('registrar'))
    await this.h.db.pool.query(`update outbox_subscription set state = 'active', generation = generation + 1`)
  }

  /** Publishes one event of each key in turn, each in a transaction of its own. */
  publish(...keys: readonly string[]): Promise<readonly Identity[]> {
    return this.publishInTurn(keys.map((key) => this.event(key)))
  }

  /** Publishes them in turn, each in a transaction of its own. */
  async publishInTurn(events: readonly Identity[]): Promise<readonly Identity[]> {
    for (const event of events) {
      const publication = this.journal.begun([event])
      publication.committing()
      await this.insert(this.h.db.pool, event)
      publication.concluded('committed')
    }
    return events
  }

  /** An event that nobody has published yet. */
  event(key: string, type = 'OrderPlaced'): Identity {
    return { eventId: randomUUID(), type, key, digest: '{"total":1}' }
  }

  /** Writes it, in whatever transaction the client is. */
  async insert(client: Client, { eventId, key, type }: Identity, sequenced = false): Promise<void> {
    await insertEvent(client, { eventId, aggregateId: key, type, sequenced })
    if (this.#types?.includes(type) ?? true) this.#committed.push(eventId)
  }

  /** The worker stands still until its leases are over. */
  async pause(worker: string): Promise<void> {
    this.journal.fault('pause', [worker])
    await lapse(this.h.db, worker)
  }

  /** The worker is gone, and its leases end. */
  async kill(worker: string): Promise<void> {
    this.journal.died(worker)
    await lapse(this.h.db, worker)
  }

  /** So much of every lease passes, as time on the database's clock would make it. */
  async passLeases(ms: number): Promise<void> {
    const earlier = (column: string): string => `${column} = ${column} - $1 * interval '1 millisecond'`
    for (const statement of [
      `update outbox_delivery set ${earlier('locked_until')} where status = 'PROCESSING'`,
      `update outbox_lease set ${earlier('until')}`,
    ]) {
      await this.h.db.pool.query(statement, [ms])
    }
  }

  /** Waits between attempts are over. */
  async passTime(): Promise<void> {
    await this.h.db.pool.query(
      `update outbox_delivery set next_retry_at = now()
        where status = 'PENDING' and next_retry_at > now() and next_retry_at < 'infinity'`,
    )
  }

  /** Runs a step that the database may refuse: a refusal is a verdict of its own. */
  async step(work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (sqlState(error) === null) throw error
      this.#caught.add(`refused: ${(error as Error).message}`)
    }
  }

  /** Looks at the tables now. */
  async inspect(): Promise<void> {
    const faults = await deliveryFaults(this.h.db.pool, this.#committed)
    for (const name of Object.keys(faults)) this.#caught.add(name)
  }

  /** Everything that the checker and the tables say against it, by name. */
  async verdict(): Promise<readonly string[]> {
    await this.inspect()
    await this.#writeDownTheRest()
    for (const name of Object.keys(anomaliesOf(this.journal.judge()))) this.#caught.add(name)
    const unused = this.#rewrites.filter(({ isUsed }) => !isUsed)
    if (unused.length > 0) {
      throw new Error(
        `No statement has ${unused.map(({ fragment }) => fragment.source).join(' or ')} any more`,
      )
    }
    return [...this.#caught].toSorted()
  }

  async count(sql: string, values: unknown[] = []): Promise<number> {
    return Number(await one(this.h.db.pool, sql, values))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.h[Symbol.asyncDispose]()
  }

  #rewritten(text: string): string {
    let rewritten = text
    for (const rewrite of this.#rewrites) {
      const before = rewritten
      rewritten = before.replaceAll(new RegExp(rewrite.fragment, 'gm'), rewrite.replacement)
      if (rewritten !== before) rewrite.isUsed = true
    }
    return rewritten
  }

  async #writeDownTheRest(): Promise<void> {
    const { rows: letters } = await this.h.db.pool.query<{ event_id: string }>(
      'select event_id from outbox_dead_letter where not resolved',
    )
    const aside = new Set(letters.map(({ event_id }) => event_id))
    for (const eventId of aside) this.journal.setAside(eventId)
    const { rows: left } = await this.h.db.pool.query<{ event_id: string; status: string }>(
      `select event_id, status from outbox_delivery where status <> 'DONE'`,
    )
    for (const { event_id, status } of left) if (!aside.has(event_id)) this.journal.left(event_id, status)
  }
}
