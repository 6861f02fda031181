import type pg from 'pg'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { sharedMs } from './clock.ts'
import { SUBSCRIPTIONS } from './config.ts'
import type { Journal } from './journal.ts'
import { isLate } from './late.ts'

/** Looks at the outbox from outside, through no proxy, for the live line and the end of the run. */
export class Watch implements AsyncDisposable {
  readonly #pool: pg.Pool
  /** For what has to be known, however long it takes. */
  readonly #patient: pg.Pool
  readonly #schema: string
  readonly #journal: Journal
  readonly #leaseMs: number
  readonly #known = new Map<string, string>()
  #looks = 0

  constructor(url: string, schema: string, journal: Journal, leaseMs: number, patienceMs: number) {
    const poolOf = (timeoutMs: number): pg.Pool =>
      sturdyPool({
        connectionString: url,
        application_name: 'watch',
        max: 2,
        query_timeout: timeoutMs,
        connectionTimeoutMillis: timeoutMs,
      })
    this.#pool = poolOf(5_000)
    this.#patient = poolOf(patienceMs)
    this.#schema = schema
    this.#journal = journal
    this.#leaseMs = leaseMs
  }

  /** How many deliveries are not done; null if the database does not say. A slow answer is written down as a fault. */
  async waiting(): Promise<number | null> {
    const at = sharedMs()
    try {
      const { rows } = await this.#pool.query<{ count: number }>(
        `select count(*)::int as count from ${this.#schema}.outbox_delivery where status in ('PENDING', 'PROCESSING')`,
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
    const { rows } = await this.#patient
      .query<{ name: string; event_id: string; status: string }>(
        `select s.name, d.event_id, d.status
           from ${this.#schema}.outbox_delivery d join ${this.#schema}.outbox_subscription s on s.id = d.subscription_id
          where d.status <> 'DONE'`,
      )
      .catch((cause: unknown) => {
        throw new Error('There is no verdict: the database does not say what is left in the outbox', {
          cause,
        })
      })
    for (const { name, event_id, status } of rows) {
      this.#journal.write({ kind: 'left', subscription: name, eventId: event_id, status })
    }
  }

  /** What waits, where, and for whom, for people. */
  async standstill(): Promise<readonly string[]> {
    const { rows } = await this.#patient
      .query<{ line: string }>(
        `select format('%s %s%s%s: %s, the first is event %s; lane %s of %s until %s; lease of %s until %s; due %s',
                       s.name, d.status, case when d.held then ' held' end, case when d.suspect then ' suspect' end,
                       d.count, d.event_id, d.lane, coalesce(l.owner, 'nobody'), l.until,
                       coalesce(d.locked_by, 'nobody'), d.locked_until, d.next_retry_at) as line
           from (select distinct on (subscription_id, status, held, suspect) *,
                        count(*) over (partition by subscription_id, status, held, suspect)
                   from ${this.#schema}.outbox_delivery
                  where status in ('PENDING', 'PROCESSING')
                  order by subscription_id, status, held, suspect, id) d
           join ${this.#schema}.outbox_subscription s on s.id = d.subscription_id
           left join ${this.#schema}.outbox_lane l on l.subscription_id = d.subscription_id and l.lane = d.lane
         union all
         select format('%s was seen at %s; it is %s now', worker_id, seen_at, clock_timestamp())
           from ${this.#schema}.outbox_worker`,
      )
      .catch((error: unknown) => ({ rows: [{ line: `the database does not say what: ${String(error)}` }] }))
    return rows.map(({ line }) => line)
  }

  /** All the database knows of an event. */
  async rowsOf(eventId: string): Promise<readonly unknown[]> {
    const { rows } = await this.#patient.query<{ row: unknown }>(
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
    await Promise.all([this.#pool.end(), this.#patient.end()])
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
    if (!isLate(until - at, this.#leaseMs)) return
    const id = `slow-${this.#looks}`
    this.#journal.writeAt({ kind: 'fault', at, until, id, name: 'slowDatabase', workers: null })
  }
}
