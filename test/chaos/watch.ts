import type pg from 'pg'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { sharedMs } from './clock.ts'
import { SUBSCRIPTIONS } from './config.ts'
import type { Journal } from './journal.ts'

/** Looks at the outbox from outside, through no proxy, for the live line and the end of the run. */
export class Watch implements AsyncDisposable {
  readonly #pool: pg.Pool
  readonly #schema: string
  readonly #journal: Journal
  readonly #leaseMs: number
  readonly #known = new Map<string, string>()
  #looks = 0

  constructor(url: string, schema: string, journal: Journal, leaseMs: number) {
    this.#pool = sturdyPool({
      connectionString: url,
      application_name: 'watch',
      max: 2,
      query_timeout: 5_000,
      connectionTimeoutMillis: 5_000,
    })
    this.#schema = schema
    this.#journal = journal
    this.#leaseMs = leaseMs
  }

  /** How many deliveries are not done; null if the database does not say. A slow answer is written down as a fault. */
  async waiting(): Promise<number | null> {
    const at = sharedMs()
    const delivery = `${this.#schema}.outbox_delivery`
    try {
      // One index each: what is done is never counted.
      const { rows } = await this.#pool.query<{ count: number }>(
        `select ((select count(*) from ${delivery} where status = 'PENDING' and not held)
               + (select count(*) from ${delivery} where status = 'PENDING' and held and not suspect)
               + (select count(*) from ${delivery} where status = 'PENDING' and suspect)
               + (select count(*) from ${delivery} where status = 'PROCESSING'))::int as count`,
      )
      await this.#noteSubscriptions()
      return rows[0]?.count ?? null
    } catch {
      return null
    } finally {
      this.#noteSlowness(at, sharedMs())
    }
  }

  /** Whether all subscriptions are served. */
  get isComplete(): boolean {
    return SUBSCRIPTIONS.every((name) => this.#known.has(name))
  }

  /** Writes down everything that is not done. */
  async noteLeft(): Promise<void> {
    const { rows } = await this.#pool.query<{ name: string; event_id: string; status: string }>(
      `select s.name, d.event_id, d.status
         from ${this.#schema}.outbox_delivery d join ${this.#schema}.outbox_subscription s on s.id = d.subscription_id
        where d.status <> 'DONE'`,
    )
    for (const { name, event_id, status } of rows) {
      this.#journal.write({ kind: 'left', subscription: name, eventId: event_id, status })
    }
  }

  /** All the database knows of an event. */
  async rowsOf(eventId: string): Promise<readonly unknown[]> {
    const { rows } = await this.#pool.query<{ row: unknown }>(
      `select to_jsonb(e) as row from ${this.#schema}.outbox_event e where e.event_id = $1
       union all
       select to_jsonb(d) || jsonb_build_object('subscription', s.name)
         from ${this.#schema}.outbox_delivery d join ${this.#schema}.outbox_subscription s on s.id = d.subscription_id
        where d.event_id = $1`,
      [eventId],
    )
    return rows.map(({ row }) => row)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end()
  }

  /** A subscription owes an event only if it was active, with that type, before the event was begun. */
  async #noteSubscriptions(): Promise<void> {
    const { rows } = await this.#pool.query<{
      name: string
      order_by: string
      event_types: string[] | null
    }>(`select name, order_by, event_types from ${this.#schema}.outbox_subscription where state = 'active'`)
    for (const { name, order_by, event_types: types } of rows) {
      const text = JSON.stringify(types)
      if (this.#known.get(name) === text) continue
      this.#known.set(name, text)
      this.#journal.write({
        kind: 'subscribed',
        subscription: name,
        order: order_by === 'none' ? 'none' : 'key',
        oneAtATime: name === 'solo',
        types,
      })
    }
  }

  #noteSlowness(at: number, until: number): void {
    this.#looks += 1
    if (until - at < this.#leaseMs / 4) return
    const id = `slow-${this.#looks}`
    this.#journal.writeAt({ kind: 'fault', at, until, id, name: 'slowDatabase', workers: null })
  }
}
