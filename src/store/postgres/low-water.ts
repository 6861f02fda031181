import type { Clock } from '../../runtime/clock.ts'
import { keptQuery, type PgPool, withClient } from './client.ts'
import { FRESH_POSITION } from './fresh-position.ts'
import type { QuotedSchema } from './identifiers.ts'

/** From where fresh deliveries are looked for. Good for one generation of the subscription only. */
export interface LowWaterBound {
  readonly position: string
  readonly generation: number
}

/** Looks everywhere. No subscription has generation 0. */
export const UNBOUNDED: LowWaterBound = { position: '0', generation: 0 }

const REFRESH_MS = 1_000
// A worker that takes nothing leaves nothing dead behind to be kept off.
const IDLE_REFRESH_MS = 30_000
// One refresh proposes a bound and the next decides on it.
const REFRESHES_PER_BOUND = 2
// The bound is safe by proof; this is for rows nobody could foresee, such as a restored backup.
const UNBOUNDED_PASS_MS = 5_000

// Whoever has a position has a transaction id already. So every position up to this one belongs to a transaction
// older than the id taken here, which is taken after the position is read.
const proposeSql = (schema: QuotedSchema): string => `
  select q.last_value - (not q.is_called)::int, pg_current_xact_id() from ${schema}.outbox_event_id_seq q`

// Once every transaction up to that id has ended, no fresh row can appear at or below that position any more: the
// bound moves to the first one that is still there. A bound taken from claimed positions would strand late commits.
const decideSql = (schema: QuotedSchema): string => `
  select s.generation,
         coalesce((select min(f.id) from generate_series(0, greatest(s.lanes, 1) - 1) as l(lane)
                    cross join lateral (
                      select d.id from ${schema}.outbox_delivery d
                       where d.subscription_id = s.id and d.lane = l.lane::smallint
                         and d.fresh
                         and ${FRESH_POSITION} >= case when s.generation = $4 then $3::bigint else 0 end
                         and ${FRESH_POSITION} <= $2
                       order by ${FRESH_POSITION} limit 1) f),
                  $2::bigint + 1)
    from ${schema}.outbox_subscription s
   where s.id = $1 and s.state = 'active' and pg_snapshot_xmin(pg_current_snapshot()) > $5::text::xid8`

/**
 * Keeps claims off the dead entries at the head of the index of fresh rows, for one subscription and one worker.
 * Without it a claim under a snapshot that somebody holds open reads everything that was ever delivered since.
 */
export class LowWater {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema
  readonly #subscriptionId: number
  readonly #clock: Clock
  #bound: LowWaterBound = UNBOUNDED
  #proposal: { readonly position: string; readonly xid: string } | null = null
  #refreshedAt = Number.NEGATIVE_INFINITY
  #refreshesDue = REFRESHES_PER_BOUND
  #unboundedAt = 0
  #refreshing: Promise<void> | null = null

  constructor(pool: PgPool, schema: QuotedSchema, subscriptionId: number, clock: Clock) {
    this.#pool = pool
    this.#schema = schema
    this.#subscriptionId = subscriptionId
    this.#clock = clock
    this.#unboundedAt = clock.monotonicMs()
  }

  /** The bound for the next claim. */
  async next(): Promise<LowWaterBound> {
    // Two small statements about once a second: it is ended long before, unless claims follow each other at once.
    await this.#refreshing
    const now = this.#clock.monotonicMs()
    if (now - this.#unboundedAt >= UNBOUNDED_PASS_MS) {
      this.#unboundedAt = now
      return UNBOUNDED
    }
    return this.#bound
  }

  /**
   * Takes note of what a claim brought, and about once a second while there is work moves the bound on: behind the claim,
   * so that what was claimed does not wait for it.
   */
  claimed(count: number): void {
    if (count > 0) this.#refreshesDue = REFRESHES_PER_BOUND
    const now = this.#clock.monotonicMs()
    if (now - this.#refreshedAt < (this.#refreshesDue > 0 ? REFRESH_MS : IDLE_REFRESH_MS)) return
    this.#refreshedAt = now
    this.#refreshesDue -= 1
    // What fails leaves the bound as it is, which is safe; the next claim meets the same trouble, and tells.
    this.#refreshing = this.#refresh()
      .catch(() => undefined)
      .finally(() => {
        this.#refreshing = null
      })
  }

  async #refresh(): Promise<void> {
    await withClient(this.#pool, async (client) => {
      if (this.#proposal !== null) {
        const { position, xid } = this.#proposal
        const values = [this.#subscriptionId, position, this.#bound.position, this.#bound.generation, xid]
        const [decided] = await keptQuery(client, 'decide', decideSql(this.#schema), values)
        if (decided === undefined) return
        this.#bound = { generation: Number(decided[0]), position: decided[1] as string }
      }
      const [proposed] = await keptQuery(client, 'propose', proposeSql(this.#schema), [])
      this.#proposal = { position: proposed?.[0] as string, xid: proposed?.[1] as string }
    })
  }
}
