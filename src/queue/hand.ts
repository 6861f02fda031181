import type { ClaimedDelivery, DeliveryKey } from '../delivery/delivery.ts'

/** How long a lease is good for, by this process's own clock. Extended by heartbeats. */
export class LeaseTerm {
  /** When the last statement that was confirmed to set or extend the lease was sent: never later than it began. */
  confirmedAtMs: number

  constructor(confirmedAtMs: number) {
    this.confirmedAtMs = confirmedAtMs
  }

  /** A statement that was sent then has extended it. */
  confirm(sentAtMs: number): void {
    this.confirmedAtMs = Math.max(this.confirmedAtMs, sentAtMs)
  }
}

/** A delivery in this worker's hand: claimed, and neither settled nor lost. */
export class Held<Delivery extends ClaimedDelivery = ClaimedDelivery> extends LeaseTerm {
  readonly delivery: Delivery
  /** True once the lease is, or may be, somebody else's: it must not be started any more. */
  lost = false
  /** True once later events of its key had to wait because it is not written: whoever writes it lets them go. */
  stoppedKey = false
  /** True once an earlier event of its key is to be run again: this one has to run after that, and so again. */
  outrun = false
  /** Its neighbours in the hand: for the hand alone. */
  before: Held<Delivery> | null = null
  after: Held<Delivery> | null = null

  constructor(delivery: Delivery, confirmedAtMs: number) {
    super(confirmedAtMs)
    this.delivery = delivery
  }
}

/** How long leases last and how early they are given up. */
export interface LeaseLimits {
  readonly leaseMs: number
  /** How long before its end a lease counts as lost: for clocks that drift and statements under way. */
  readonly marginMs: number
}

/**
 * Everything of one subscription that this worker has under lease, in the order it came.
 *
 * A list through the deliveries themselves and not a Set: at this rate a Set makes a new table every few claims, each of
 * which the last one points to. Once one of them is old, all later ones and what they hold live until the whole heap is
 * searched, and thousands of deliveries that are long settled with them.
 */
export class Hand<Delivery extends ClaimedDelivery = ClaimedDelivery> {
  #first: Held<Delivery> | null = null
  #last: Held<Delivery> | null = null
  #size = 0
  #characters = 0
  readonly #perLane: number[] = []
  readonly #charactersPerLane: number[] = []
  readonly #usableMs: number

  constructor(limits: LeaseLimits) {
    this.#usableMs = limits.leaseMs - limits.marginMs
  }

  /** How many deliveries are in hand, settled ones whose settling is not confirmed included. */
  get size(): number {
    return this.#size
  }

  /** How many of them are of one lane. */
  countLane(lane: number): number {
    return this.#perLane[lane] ?? 0
  }

  /** How much text those of one lane take up. */
  charactersOf(lane: number): number {
    return this.#charactersPerLane[lane] ?? 0
  }

  /** How much text all of them take up. */
  get characters(): number {
    return this.#characters
  }

  /** Whether something is in hand of which this is true. */
  some(isMeant: (delivery: Delivery) => boolean): boolean {
    for (const { delivery } of this.#all()) if (isMeant(delivery)) return true
    return false
  }

  /** The leases of everything in hand of these lanes, each once. */
  tokensOf(lanes: readonly number[]): readonly string[] {
    const tokens = new Set<string>()
    for (const { delivery } of this.#all())
      if (lanes.includes(delivery.lane)) tokens.add(delivery.lease.token)
    return [...tokens]
  }

  /** Takes in what one claim returned; `sentAtMs` is when the claim was sent. */
  take(deliveries: readonly Delivery[], sentAtMs: number): readonly Held<Delivery>[] {
    return deliveries.map((delivery) => {
      const held = new Held(delivery, sentAtMs)
      held.before = this.#last
      if (this.#last === null) this.#first = held
      else this.#last.after = held
      this.#last = held
      this.#count(delivery, 1)
      return held
    })
  }

  /** Lets go of a delivery: it is settled, or was never ours any more. */
  drop(held: Held<Delivery>): void {
    if (!this.#has(held)) return
    const { before, after } = held
    if (before === null) this.#first = after
    else before.after = after
    if (after === null) this.#last = before
    else after.before = before
    held.before = null
    held.after = null
    this.#count(held.delivery, -1)
  }

  #count({ lane, characters = 0 }: Delivery, sign: 1 | -1): void {
    this.#size += sign
    this.#characters += sign * characters
    this.#perLane[lane] = this.countLane(lane) + sign
    this.#charactersPerLane[lane] = this.charactersOf(lane) + sign * characters
  }

  /** Whether a delivery may still be started. */
  isGood(held: Held<Delivery>, nowMs: number): boolean {
    return !held.lost && nowMs - held.confirmedAtMs <= this.#usableMs
  }

  /** Those whose leases a heartbeat is to extend. */
  extendable(): readonly Held<Delivery>[] {
    return [...this.#all()].filter((held) => !held.lost)
  }

  /** Marks these lost. Returns those that are in hand and were not marked before. */
  lose(lost: readonly Held<Delivery>[]): readonly Held<Delivery>[] {
    const named = new Set(lost)
    return named.size === 0 ? [] : this.#mark((held) => named.has(held))
  }

  /** Marks everything of a lane lost. */
  loseLane(lane: number): readonly Held<Delivery>[] {
    return this.#mark((held) => held.delivery.lane === lane)
  }

  /** Marks lost what no heartbeat has confirmed for too long. */
  expire(nowMs: number): readonly Held<Delivery>[] {
    return this.#mark((held) => !this.isGood(held, nowMs))
  }

  *#all(): Generator<Held<Delivery>, void> {
    for (let held = this.#first; held !== null; held = held.after) yield held
  }

  #has(held: Held<Delivery>): boolean {
    return held.before !== null || this.#first === held
  }

  #mark(isLost: (held: Held<Delivery>) => boolean): readonly Held<Delivery>[] {
    const marked: Held<Delivery>[] = []
    for (const held of this.#all()) {
      if (held.lost || !isLost(held)) continue
      held.lost = true
      marked.push(held)
    }
    return marked
  }
}

/** One text per delivery, for sets and maps. */
export function keyText({ subscriptionId, lane, position }: DeliveryKey): string {
  return `${subscriptionId}/${lane}/${position}`
}
