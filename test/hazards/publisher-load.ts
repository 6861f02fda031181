import type pg from 'pg'
import { type Random, seededRandom } from '../../src/runtime/random.ts'
import { sqlState } from '../../src/runtime/sql-state.ts'
import { eventIdForLayout } from '../support/install-tables.ts'
import type { Hazard } from './support.ts'

/** One event of a transaction that committed, with the times at which its client sent COMMIT and had the answer. */
export interface Published {
  readonly eventId: string
  readonly stream: string
  readonly type: string
  readonly key: string
  readonly commitSentMs: number
  readonly commitAckedMs: number
}

const ISOLATION = ['read committed', 'read committed', 'repeatable read', 'serializable'] as const
const PUBLISHERS = 6

/**
 * Publishers that do everything that makes registration hard: all isolation levels, snapshots taken long before the
 * first write, transaction ids taken long before the event, savepoints, several rows, duplicates, rollbacks, and now
 * and then a long transaction.
 */
export class PublisherLoad {
  readonly published: Published[] = []
  /** What the next transactions publish. */
  stream = 'things'
  types: readonly string[] = ['ThingHappened']
  /** Transactions turned away with 40001, to be tried again. */
  refused = 0
  readonly #hazard: Hazard
  readonly #random: Random
  /** For each publisher how many transactions it has ended. */
  readonly #ended: number[] = []
  readonly #watchers = new Set<() => void>()
  #running: Promise<void>[] = []
  #stopping = false

  constructor(hazard: Hazard, seed: number) {
    this.#hazard = hazard
    this.#random = seededRandom(seed)
  }

  async start(): Promise<void> {
    const clients = await Promise.all(
      Array.from({ length: PUBLISHERS }, (_, index) => this.#hazard.connect(`publisher ${index}`)),
    )
    this.#running = clients.map((client, index) => this.#publishForEver(client, index))
    await this.nextTransactions()
  }

  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all(this.#running)
  }

  /** Resolves when every transaction that is open now has ended. */
  async nextTransactions(): Promise<void> {
    const before = [...this.#ended]
    const isOver = (): boolean => this.#ended.every((ended, index) => ended > (before[index] ?? 0))
    while (!isOver()) {
      await new Promise<void>((resolve) => {
        this.#watchers.add(resolve)
      })
    }
  }

  async #publishForEver(client: pg.Client, index: number): Promise<void> {
    this.#ended[index] = 0
    while (!this.#stopping) {
      try {
        await this.#transaction(client)
      } catch (error) {
        if (sqlState(error) !== '40001') throw error
        this.refused += 1
        await client.query('rollback')
      }
      this.#ended[index] = (this.#ended[index] ?? 0) + 1
      for (const tell of this.#watchers) tell()
      this.#watchers.clear()
    }
  }

  async #transaction(client: pg.Client): Promise<void> {
    await client.query(`begin isolation level ${this.#oneOf(ISOLATION)}`)
    // The snapshot of the higher levels is taken here, and the transaction id perhaps long after.
    if (this.#chance(0.5)) await client.query('select count(*) from outbox_subscription')
    await this.#pause(client)
    if (this.#chance(0.3)) await client.query('select pg_current_xact_id()')
    await this.#pause(client)
    const events = await this.#insert(client)
    await this.#pause(client)
    if (this.#chance(0.1)) {
      await client.query('rollback')
      return
    }
    const commitSentMs = performance.now()
    await client.query('commit')
    const commitAckedMs = performance.now()
    for (const event of events) this.published.push({ ...event, commitSentMs, commitAckedMs })
  }

  async #insert(client: pg.Client): Promise<readonly Omit<Published, 'commitSentMs' | 'commitAckedMs'>[]> {
    if (!this.#chance(0.2)) return this.#insertRows(client)
    await client.query('savepoint s')
    const given = await this.#insertRows(client)
    if (this.#chance(0.5)) return given
    await client.query('rollback to savepoint s')
    return this.#insertRows(client)
  }

  async #insertRows(
    client: pg.Client,
  ): Promise<readonly Omit<Published, 'commitSentMs' | 'commitAckedMs'>[]> {
    const events = Array.from({ length: this.#oneOf([1, 1, 1, 2, 4]) }, () => ({
      eventId: eventIdForLayout(),
      stream: this.stream,
      type: this.#oneOf(this.types),
      key: `k${Math.floor(this.#random() * 20)}`,
    }))
    // The same id twice in one statement, or one that is there already: neither may make a second delivery.
    const known = this.published.at(-1)
    const again = this.#chance(0.2) ? [...events, ...events.slice(0, 1), ...(known ? [known] : [])] : events
    await client.query(
      `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
       select e.id, e.stream, e.type, 'thing', e.key, '{}'
         from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as e(id, stream, type, key)
       on conflict do nothing`,
      [
        again.map(({ eventId }) => eventId),
        again.map(({ stream }) => stream),
        again.map(({ type }) => type),
        again.map(({ key }) => key),
      ],
    )
    return events
  }

  async #pause(client: pg.Client): Promise<void> {
    if (this.#chance(0.4)) return
    const seconds = this.#chance(0.03) ? 0.03 : this.#random() * 0.004
    await client.query('select pg_sleep($1)', [seconds])
  }

  #chance(probability: number): boolean {
    return this.#random() < probability
  }

  #oneOf<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item
  }
}
