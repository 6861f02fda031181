import type { Clock } from '../../runtime/clock.ts'
import { keptQuery, type PgPool, withClient } from './client.ts'
import { FRESH_POSITION } from './fresh-position.ts'
import { heldSince } from './held-since.ts'
import type { QuotedSchema } from './identifiers.ts'

/** From where deliveries are looked for. */
export interface LowWaterBound {
  /** The first position of fresh ones. */
  readonly position: string
  /** The first due time of retries. */
  readonly dueFrom: string
  /** For each lane the first transaction that anything held was held by, as an array of the database. */
  readonly heldFrom: string
  /** What it is good for, and nothing else: see `ERA`. */
  readonly era: string
}

/** Looks everywhere. */
export const UNBOUNDED: LowWaterBound = { position: '0', dueFrom: '-infinity', heldFrom: '{}', era: 'none' }

// A server that takes another's place may have lost its last commits, and gives their positions and transaction ids
// again. Whatever it was restored from, it was started another time, and a pooler changes over without a sign.
const SERVER = '(extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint::text'

/** Of a subscription `s`: its generation, and this run of this server. A bound is good for one era only. */
export const ERA: string = `(s.generation || '@' || ${SERVER})`

/** The due time from which a claim looks for retries. Where the clock was set back, it is at most the time of now. */
export const dueFrom = (era: string, bound: string): string =>
  `case when ${ERA} = ${era} then least(${bound}::timestamptz, clock_timestamp() - ${LATE}) else '-infinity' end`

/** The bounds of what is held, by lane: of a CTE `open`, as `held_from`. */
export const heldFrom = (era: string, bound: string): string =>
  `case when ${ERA} = ${era} then ${bound}::bigint[] else '{}' end`

/** Lanes, each with that of its own. */
export const withHeldFrom = (lanes: string): string => `
    select m.*, coalesce((select held_from from open)[m.lane + 1], 0) as held_from from (${lanes}) m`

// Who writes a due time reads the clock a moment before he has a transaction id.
const LATE = `interval '1 second'`

const REFRESH_MS = 1_000
// A worker that takes nothing leaves nothing dead behind to be kept off.
const IDLE_REFRESH_MS = 30_000
// One refresh proposes a bound and the next decides on it.
const REFRESHES_PER_BOUND = 2
// The bound is safe by proof; this is for rows nobody could foresee, such as a restored backup.
const UNBOUNDED_PASS_MS = 5_000

// Whoever has a position has a transaction id already. So every position up to this one belongs to a transaction
// older than the id taken here, which is taken after the position is read.
// A server that ends all sessions because one of them crashed is not started another time, and gives the positions and ids
// again that were not on disk yet. The lock is something written, for which a commit waits until it is on disk, and with it
// whatever was written before: a transaction that has an id and nothing else would not.
const proposeSql = (schema: QuotedSchema): string => `
  with proposal as materialized (
    select q.last_value - (not q.is_called)::int as position, pg_current_xact_id() as xid,
           case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'local', true) end
      from ${schema}.outbox_event_id_seq q
  )
  select p.position, p.xid, ${SERVER},
         to_char((clock_timestamp() - ${LATE}) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    from proposal p
   cross join lateral (
     select from ${schema}.outbox_subscription s
      where s.id = $1 and s.state = 'active' and p.xid is not null
        for key share skip locked) written`

// Once every transaction up to that id has ended, no fresh row can appear at or below that position any more: the
// bound moves to the first one that is still there. A bound taken from claimed positions would strand late commits.
const freshFrom = (schema: QuotedSchema): string => `
         coalesce((select min(f.id) from generate_series(0, greatest(s.lanes, 1) - 1) as l(lane)
                    cross join lateral (
                      select d.id from ${schema}.outbox_delivery d
                       where d.subscription_id = s.id and d.lane = l.lane::smallint
                         and d.fresh
                         and ${FRESH_POSITION} >= case when ${ERA} = $4 then $3::bigint else 0 end
                         and ${FRESH_POSITION} <= $2
                       order by ${FRESH_POSITION} limit 1) f),
                  $2::bigint + 1)`

// In the same way for due times, which are not before those of their transactions, or for less than LATE. Who comes later
// all the same is found by the pass without a bound: nothing passes him, because what is held is looked up by key.
const retriesFrom = (schema: QuotedSchema): string => `
         to_char(least($7::timestamptz,
                  (select min(f.at) from generate_series(0, greatest(s.lanes, 1) - 1) as l(lane)
                    cross join lateral (
                      select d.next_retry_at as at from ${schema}.outbox_delivery d
                       where d.subscription_id = s.id and d.lane = l.lane::smallint
                         and d.held and not d.suspect
                         and d.next_retry_at >= case when ${ERA} = $4 then $8::timestamptz else '-infinity' end
                         and d.next_retry_at <= $7::timestamptz
                       order by d.next_retry_at, d.id limit 1) f)) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

// Of each lane the first transaction that something was held by and still is, or the one that has to have ended: what is held
// later is held by later ones.
const oldestHeld = (schema: QuotedSchema): string => `
         array(select coalesce(
                        (select ${heldSince('h')} from ${schema}.outbox_delivery h
                          where h.subscription_id + 0 = s.id and h.lane = l.lane::smallint
                            and h.held and h.ordering_key is not null
                            and ${heldSince('h')}
                                >= case when ${ERA} = $4 then coalesce(($9::bigint[])[l.lane + 1], 0) else 0 end
                            and ${heldSince('h')} < $5::text::bigint
                          order by ${heldSince('h')} limit 1),
                        $5::text::bigint)
                 from generate_series(0, s.lanes - 1) as l(lane) order by l.lane)`

// What another server proposed ($6) means nothing here: then the answer is only that.
const decideSql = (schema: QuotedSchema): string => `
  select ${ERA}, ${SERVER} = $6,${freshFrom(schema)},${retriesFrom(schema)},${oldestHeld(schema)}
    from ${schema}.outbox_subscription s
   where s.id = $1 and s.state = 'active'
     and (pg_snapshot_xmin(pg_current_snapshot()) > $5::text::xid8 or ${SERVER} <> $6)`

type Decided = readonly [era: string, isSameServer: string, position: string, due: string, held: string]

/** What is to be decided once every transaction up to an id has ended. */
interface Proposal {
  readonly position: string
  readonly xid: string
  readonly server: string
  readonly dueTime: string
}

/**
 * Keeps claims off the dead entries of the indexes of fresh, due and held rows, for one subscription and one worker.
 * Without it a claim under a snapshot that somebody holds open reads everything that was ever delivered since.
 */
export class LowWater {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema
  readonly #subscriptionId: number
  readonly #clock: Clock
  #bound: LowWaterBound = UNBOUNDED
  #proposal: Proposal | null = null
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

  /** The bound for the next claim: while it is being moved on, the last one is as good. */
  next(): LowWaterBound {
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
    if (
      this.#refreshing !== null ||
      now - this.#refreshedAt < (this.#refreshesDue > 0 ? REFRESH_MS : IDLE_REFRESH_MS)
    )
      return
    this.#refreshedAt = now
    this.#refreshesDue -= 1
    // What fails leaves the bound as it is, which is safe; the next claim meets the same trouble, and tells.
    this.#refreshing = this.#refresh()
      .catch(() => undefined)
      .finally(() => {
        this.#refreshing = null
      })
  }

  /** Resolves when it is not being moved on. */
  async settled(): Promise<void> {
    await this.#refreshing
  }

  async #refresh(): Promise<void> {
    await withClient(this.#pool, async (client) => {
      if (this.#proposal !== null) {
        const [decided] = await keptQuery(
          client,
          'decide',
          decideSql(this.#schema),
          this.#decision(this.#proposal),
        )
        if (decided === undefined) return
        const [era, isSameServer, position, due, held] = decided as Decided
        this.#bound = isSameServer === 't' ? { era, position, dueFrom: due, heldFrom: held } : UNBOUNDED
      }
      this.#proposal = null
      const [proposed] = await keptQuery(client, 'propose', proposeSql(this.#schema), [this.#subscriptionId])
      // Nothing is decided on while somebody changes the subscription, nor before it is active.
      if (proposed === undefined) return
      const [position, xid, server, dueTime] = proposed as readonly [string, string, string, string]
      this.#proposal = { position, xid, server, dueTime }
    })
  }

  #decision({ position, xid, server, dueTime }: Proposal): readonly unknown[] {
    const { era, dueFrom: due, heldFrom: held } = this.#bound
    return [this.#subscriptionId, position, this.#bound.position, era, xid, server, dueTime, due, held]
  }
}
