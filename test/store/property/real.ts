import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { ManualClock } from '../../../src/runtime/manual-clock.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import type { WorkerStore } from '../../../src/store/store.ts'
import { lapseLeases } from '../../support/leases.ts'
import type { OutboxDatabase } from '../postgres/fixtures.ts'
import type { ModelEvent, Wait } from './model.ts'

/** A delivery as its row says. */
export interface RealDelivery {
  readonly subscription: string
  readonly eventId: string
  readonly position: number
  readonly lane: number
  readonly status: string
  readonly attempts: number
  readonly suspect: boolean
  readonly held: boolean
  readonly wait: Wait
  readonly token: string | null
  readonly letters: number
}

let runs = 0

/** The real store on the real database. Each run has a stream and subscriptions of its own. */
export class Real {
  readonly stream: string
  readonly store: WorkerStore
  readonly clock = new ManualClock()
  readonly #db: OutboxDatabase
  #open: pg.PoolClient | null = null

  constructor(db: OutboxDatabase) {
    runs += 1
    this.stream = `run${runs}`
    this.#db = db
    this.store = new PostgresWorkerStore({ pool: db.pool, own: false }, db.quoted, this.clock)
  }

  async publish(
    keys: readonly string[],
    end: 'commit' | 'rollback' | 'leave open',
  ): Promise<readonly string[]> {
    const client = await this.#db.pool.connect()
    await client.query('begin')
    const ids = keys.map(() => randomUUID())
    await client.query(
      `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
       select e.id, $1, 'ThingHappened', 'thing', e.key, '{}'
         from unnest($2::uuid[], $3::text[]) with ordinality as e(id, key, n) order by e.n`,
      [this.stream, ids, keys],
    )
    this.#open = client
    if (end !== 'leave open') await this.endPublish(end)
    return ids
  }

  async endPublish(end: 'commit' | 'rollback'): Promise<void> {
    const client = this.#open
    this.#open = null
    await client?.query(end)
    client?.release()
  }

  /** Time passes for a worker's own clock, so that every claim refreshes its low-water bound. */
  letSecondPass(): Promise<void> {
    return this.clock.advance(1_000)
  }

  /** The leases of a worker lapse, as if its time had passed on the database's clock. */
  async lapse(workerId: string): Promise<void> {
    await lapseLeases({ query: (text, values) => this.#run(text, values) }, workerId)
  }

  /** What waits for a time is due. */
  async letTimePass(): Promise<void> {
    await this.#run(`update outbox_delivery set next_retry_at = clock_timestamp()
      where status = 'PENDING' and next_retry_at > clock_timestamp() and next_retry_at < 'infinity'`)
  }

  /** What waits for a time waits long, so that no test is too slow for it. */
  async holdTime(): Promise<void> {
    await this.#run(`update outbox_delivery set next_retry_at = clock_timestamp() + interval '1 hour'
      where status = 'PENDING' and next_retry_at > clock_timestamp() and next_retry_at < 'infinity'`)
  }

  /** What an operator decides on an open dead letter. */
  async decide(act: 'retry' | 'resolve', subscription: string, { eventId }: ModelEvent): Promise<void> {
    await this.#run(
      `select outbox_${act}(id, 'kim') from outbox_dead_letter
        where subscription = $1 and event_id = $2 and not resolved`,
      [subscription, eventId],
    )
  }

  /** Every delivery of this run's subscriptions. */
  async deliveries(): Promise<readonly RealDelivery[]> {
    const { rows } = await this.#db.pool.query<RealDelivery>(
      `select s.name as subscription, d.event_id as "eventId", d.id::int as position, d.lane,
              d.status,
              d.attempt_count as attempts, d.suspect, d.held, d.lease_token as token,
              case when d.next_retry_at is null then 'nothing' when d.next_retry_at = 'infinity' then 'parked'
                   when d.next_retry_at <= clock_timestamp() then 'due' else 'later' end as wait,
              (select count(*)::int from outbox_dead_letter l
                where l.subscription_id = s.id and l.event_id = d.event_id and not l.resolved) as letters
         from outbox_subscription s join outbox_delivery d on d.subscription_id = s.id
        where $1 = any (s.streams) order by s.name, d.id`,
      [this.stream],
    )
    return rows
  }

  /** This run's subscriptions stop taking part, and nobody of its workers is alive. */
  async close(): Promise<void> {
    await this.endPublish('rollback')
    await this.#run(
      `update outbox_subscription set state = 'retired', retired_at = now(), retired_by = 'kim', closed_at = now() where $1 = any (streams)`,
      [this.stream],
    )
    await this.#run('delete from outbox_worker')
  }

  async #run(sql: string, values: unknown[] = []): Promise<void> {
    await this.#db.pool.query(sql, values)
  }
}
