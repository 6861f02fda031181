import type { Clock } from '../../runtime/clock.ts'
import { sqlState } from '../../runtime/sql-state.ts'
import type { LaneDelivery } from '../queue-store.ts'
import { claimFreshLanes } from './claim-fresh-lanes.ts'
import { claimLanes, type LaneClaim } from './claim-lanes.ts'
import { ClaimWindow } from './claim-window.ts'
import type { PgPool } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

/** For so long after something was held it is taken for granted that something still is. */
const HELD_MS = 1_000
const LOCK_NOT_AVAILABLE = '55P03'

/** The claims of one worker on one ordered subscription: the short way while nothing of its lanes is held or locked. */
export class LaneClaims {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock
  readonly #window = new ClaimWindow()
  #heldUntilMs = Number.NEGATIVE_INFINITY

  constructor(pool: PgPool, schema: QuotedSchema, clock: Clock) {
    this.#pool = pool
    this.#schema = schema
    this.#clock = clock
  }

  /** Takes deliveries of owned lanes. */
  async next(claim: LaneClaim): Promise<readonly LaneDelivery[]> {
    if (claim.around.length === 0 && this.#clock.monotonicMs() >= this.#heldUntilMs) {
      const taken = await this.#claimFresh(claim)
      if (taken !== null) return taken
      this.#heldUntilMs = this.#clock.monotonicMs() + HELD_MS
    }
    return claimLanes(this.#pool, this.#schema, claim)
  }

  async #claimFresh(claim: LaneClaim): Promise<readonly LaneDelivery[] | null> {
    const { request, bound } = claim
    const width = this.#window.next(request.limit)
    try {
      const taken = await claimFreshLanes(this.#pool, this.#schema, request, bound, width)
      this.#window.taken(taken?.map(({ position }) => position) ?? [], request.limit, width)
      // The backlog is at its end, or something is held: a claim without a window says which.
      return width > 0 && taken?.length === 0 ? await this.#claimFresh(claim) : taken
    } catch (error) {
      if (sqlState(error) === LOCK_NOT_AVAILABLE) return null
      throw error
    }
  }
}
