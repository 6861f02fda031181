import type { Clock } from '../../runtime/clock.ts'
import { keptQuery, type PgPool, withClient } from './client.ts'
import { FRESH_POSITION } from './fresh-position.ts'
import type { QuotedSchema } from './identifiers.ts'

/** From where fresh deliveries are looked for. */
export interface LowWaterBound {
  readonly position: string
  /** What it is good for, and nothing else: see `ERA`. */
  readonly era: string
}

/** Looks everywhere. */
export const UNBOUNDED: LowWaterBound = { position: '0', era: 'none' }

// A server that takes another's place may have lost its last commits, and gives their positions and transaction ids
// again. Whatever it was restored from, it was started another time, and a pooler changes over without a sign.
const SERVER = '(extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint::text'

/** Of a subscription `s`: its generation, and this run of this server. A bound is good for one era only. */
export const ERA: string = `(s.generation || '@' || ${SERVER})`

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
  select q.last_value - (not q.is_called)::int, pg_current_xact_id(), ${SERVER}
    from ${schema}.outbox_event_id_seq q`

// Once every transaction up to that id has ended, no fresh row can appear at or below that position any more: the
// bound moves to the first one that is still there. A bound taken from claimed positions would strand late commits.
// What another server proposed ($6) means nothing here: then the answer is only that.
const decideSql = (schema: QuotedSchema): string => `
  select ${ERA}, ${SERVER} = $6,
         coalesce((select min(f.id) from generate_series(0, greatest(s.lanes, 1) - 1) as l(lane)
                    cross join lateral (
                      select d.id from ${schema}.outbox_delivery d
                       where d.subscription_id = s.id and d.lane = l.lane::smallint
                         and d.fresh
                         and ${FRESH_POSITION} >= case when ${ERA} = $4 then $3::bigint else 0 end
                         and ${FRESH_POSITION} <= $2
                       order by ${FRESH_POSITION} limit 1) f),
                  $2::bigint + 1)
    from ${schema}.outbox_subscription s
   where s.id = $1 and s.state = 'active'
     and (pg_snapshot_xmin(pg_current_snapshot()) > $5::text::xid8 or ${SERVER} <> $6)`

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
  #proposal: { readonly position: string; readonly xid: string; readonly server: string } | null = null
  #refreshedAt = Number.NEGATIVE_INFINITY
  #refreshesDue = REFRESHES_PER_BOUND
  #unboundedAt = 0

  constructor(pool: PgPool, schema: QuotedSchema, subscriptionId: number, clock: Clock) {
    this.#pool = pool
    this.#schema = schema
    this.#subscriptionId = subscriptionId
    this.#clock = clock
    this.#unboundedAt = clock.monotonicMs()
  }

  /** The bound for the next claim. Refreshed about once a second while there is work, with a claim. */
  async next(): Promise<LowWaterBound> {
    const now = this.#clock.monotonicMs()
    if (now - this.#refreshedAt >= (this.#refreshesDue > 0 ? REFRESH_MS : IDLE_REFRESH_MS)) {
      this.#refreshedAt = now
      this.#refreshesDue -= 1
      await this.#refresh()
    }
    if (now - this.#unboundedAt >= UNBOUNDED_PASS_MS) {
      this.#unboundedAt = now
      return UNBOUNDED
    }
    return this.#bound
  }

  /** Takes note of what a claim brought: after nothing, the bound may stay as it is. */
  claimed(count: number): void {
    if (count > 0) this.#refreshesDue = REFRESHES_PER_BOUND
  }

  async #refresh(): Promise<void> {
    await withClient(this.#pool, async (client) => {
      if (this.#proposal !== null) {
        const { position, xid, server } = this.#proposal
        const values = [this.#subscriptionId, position, this.#bound.position, this.#bound.era, xid, server]
        const [decided] = await keptQuery(client, 'decide', decideSql(this.#schema), values)
        if (decided === undefined) return
        const [era, isSameServer, low] = decided
        this.#bound = isSameServer === 't' ? { era: era as string, position: low as string } : UNBOUNDED
      }
      const [proposed] = await keptQuery(client, 'propose', proposeSql(this.#schema), [])
      const [position, xid, server] = proposed as readonly [string, string, string]
      this.#proposal = { position, xid, server }
    })
  }
}
