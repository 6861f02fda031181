import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { EventIdentity } from '../../event/event.ts'
import type { Clock } from '../../runtime/clock.ts'
import { CommitpostError } from '../../runtime/errors.ts'
import { textProperty } from '../../runtime/property.ts'
import { isAboutARow } from '../../runtime/sql-state.ts'
import type { Candidate } from './claim-candidate.ts'

/** One kind of claim of one subscription. */
export interface ClaimWay<Delivery extends ClaimedDelivery> {
  /** Takes so many at most, and leaves some alone: nothing of their keys is taken either, where there are keys. */
  take(limit: number, around: readonly Candidate[]): Promise<readonly Delivery[]>
  /** The same, but no statement touches more rows than the limit. */
  takeCarefully(limit: number, around: readonly Candidate[]): Promise<readonly Delivery[]>
  /** What the first statement of a careful claim of one would touch. */
  look(around: readonly Candidate[]): Promise<readonly Candidate[]>
}

/** A row that is left alone for now. */
interface Refused {
  readonly row: Candidate
  readonly pauseMs: number
  readonly untilMs: number
}

/** Told of a row that is refused, and of its event unless that is gone. */
type Tell = (refusal: CommitpostError, event: EventIdentity | null) => void

/** How long a refused row is left alone, at first and at last: each time twice as long. */
const FIRST_PAUSE_MS = 5_000
const LAST_PAUSE_MS = 60_000
/** After so long it has been claimed by somebody else, or is gone. */
const FORGET_MS = 10 * LAST_PAUSE_MS
/** So many refused ones in a row are no matter of a row. */
const MOST_IN_A_ROW = 10
/** So many are left alone at most: who refuses more than that has to be put right first. */
const MOST_LEFT_ALONE = 100

/**
 * The rows of one subscription that the database refuses to have claimed, by a trigger of the user's own: one of them must
 * not keep the others from being claimed. A claim that is refused is tried again with half as many rows, until one is left.
 * That one is left alone for a while, and tried again later.
 */
export class RefusedRows {
  readonly #clock: Clock
  readonly #identify: (eventId: string) => Promise<EventIdentity | null>
  readonly #refused = new Map<string, Refused>()

  constructor(clock: Clock, identify: (eventId: string) => Promise<EventIdentity | null>) {
    this.#clock = clock
    this.#identify = identify
  }

  /**
   * Claims so many at most, past the rows that are refused. `tell` is told of each once.
   * @throws what the database says, where it is not about a row, or about too many.
   */
  async claim<Delivery extends ClaimedDelivery>(
    limit: number,
    way: ClaimWay<Delivery>,
    tell: Tell,
  ): Promise<readonly Delivery[]> {
    let outcome = await tried(way.take(limit, this.#around()))
    for (let size = limit, found = 0; 'error' in outcome; ) {
      const isAlone = size <= 1
      if (isAlone) {
        if (found >= MOST_IN_A_ROW || this.#around().length >= MOST_LEFT_ALONE) throw outcome.error
        const { row, beside } = await this.#find(way)
        if (row === undefined) throw outcome.error
        await this.#leaveAlone(row, outcome.error, tell)
        if (beside.length > 0) return this.#passed(beside)
        found += 1
      }
      size = isAlone ? limit : size >> 1
      outcome = await tried(way.takeCarefully(size, this.#around()))
    }
    return this.#passed(outcome.deliveries)
  }

  /** The row that a claim of one is refused for. Where it touches another too, that one is tried by itself, and may be taken. */
  async #find<Delivery extends ClaimedDelivery>(
    way: ClaimWay<Delivery>,
  ): Promise<{ readonly row: Candidate | undefined; readonly beside: readonly Delivery[] }> {
    const around = this.#around()
    const rows = await way.look(around)
    const beside: Delivery[] = []
    for (const row of rows.slice(1)) {
      const others = rows.filter((other) => other !== row)
      const outcome = await tried(way.takeCarefully(1, [...around, ...others]))
      if ('error' in outcome) return { row, beside }
      beside.push(...outcome.deliveries)
    }
    return { row: rows[0], beside }
  }

  async #leaveAlone(row: Candidate, error: unknown, tell: Tell): Promise<void> {
    const before = this.#refused.get(row.position)
    const event = before === undefined ? await this.#identify(row.eventId) : null
    const pauseMs = before === undefined ? FIRST_PAUSE_MS : Math.min(before.pauseMs * 2, LAST_PAUSE_MS)
    this.#refused.set(row.position, { row, pauseMs, untilMs: this.#clock.monotonicMs() + pauseMs })
    if (before === undefined) tell(refusedError(row, error), event)
  }

  #around(): readonly Candidate[] {
    if (this.#refused.size === 0) return []
    const nowMs = this.#clock.monotonicMs()
    for (const [position, { untilMs }] of this.#refused) {
      if (untilMs + FORGET_MS < nowMs) this.#refused.delete(position)
    }
    return [...this.#refused.values()].filter(({ untilMs }) => untilMs > nowMs).map(({ row }) => row)
  }

  /** What was claimed is not refused any more. */
  #passed<Delivery extends ClaimedDelivery>(deliveries: readonly Delivery[]): readonly Delivery[] {
    if (this.#refused.size > 0) for (const { position } of deliveries) this.#refused.delete(position)
    return deliveries
  }
}

type Outcome<Delivery> = { readonly deliveries: readonly Delivery[] } | { readonly error: unknown }

/** What became of a claim: what it took, or why one of its rows was refused. */
async function tried<Delivery>(claim: Promise<readonly Delivery[]>): Promise<Outcome<Delivery>> {
  try {
    return { deliveries: await claim }
  } catch (error) {
    if (!isAboutARow(error)) throw error
    return { error }
  }
}

function refusedError({ eventId }: Candidate, error: unknown): CommitpostError {
  const reason = textProperty(error, 'message') ?? 'it gave no reason'
  return new CommitpostError(
    'STORE_REFUSED',
    `The database refuses to have event ${eventId} claimed: ${reason}. See which trigger or constraint on ` +
      'outbox_delivery does that. It stays PENDING and is tried again, after a minute at the latest. The others go on; of ' +
      'an ordered subscription its key waits so long.',
    { cause: error },
  )
}
