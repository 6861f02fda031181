import type pg from 'pg'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { sharedMs } from './clock.ts'
import type { Journal } from './journal.ts'
import { isLate } from './late.ts'

/** A table of the run's own. */
const PROBE = 'public.chaos_probe'

/** Makes what a watch looks at besides the outbox. */
export async function prepareWatch(pool: pg.Pool): Promise<void> {
  await pool.query(`create table ${PROBE} (looks bigint not null)`)
  await pool.query(`insert into ${PROBE} values (0)`)
}

/** Looks at the outbox from outside, through no proxy, for the live line and the end of the run. */
export class Watch implements AsyncDisposable {
  readonly #pool: pg.Pool
  /** For what has to be known, however long it takes. */
  readonly #patient: pg.Pool
  readonly #schema: string
  readonly #journal: Journal
  readonly #leaseMs: number
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

  /** How many deliveries are not done; null if the database does not say. */
  async waiting(): Promise<number | null> {
    try {
      await this.#probe()
      const { rows } = await this.#pool.query<{ count: number }>(
        `select count(*)::int as count from ${this.#schema}.outbox_delivery where status in ('PENDING', 'PROCESSING')`,
      )
      return rows[0]?.count ?? null
    } catch {
      return null
    }
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

  /** A commit that has nothing to do with the outbox: where it is slow, that is written down as a fault of the database. */
  async #probe(): Promise<void> {
    const at = sharedMs()
    try {
      await this.#pool.query(`update ${PROBE} set looks = looks + 1`)
    } finally {
      this.#noteSlowness(at, sharedMs())
    }
  }

  #noteSlowness(at: number, until: number): void {
    this.#looks += 1
    if (!isLate(until - at, this.#leaseMs)) return
    const id = `slow-${this.#looks}`
    this.#journal.writeAt({ kind: 'fault', at, until, id, name: 'slowDatabase', workers: null })
  }
}
