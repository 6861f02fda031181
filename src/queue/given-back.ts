import type { DeliveryKey } from '../delivery/delivery.ts'
import type { LaneDelivery } from '../store/queue-store.ts'
import type { Held } from './hand.ts'

/** One delivery on its way back to the database. */
interface Returning {
  readonly held: Held<LaneDelivery>
  /** The last claim that was sent before the return was known to be written; null while it is not. */
  claimsBefore: number | null
}

/**
 * Which deliveries of which keys were given back, for as long as a claim may not know of it.
 *
 * To the database a delivery that is on its way back is still being worked on, so a claim may bring later events of
 * its key. Those must not run: they would overtake. A claim knows of a return if it was sent after the return was
 * written, or if it brings the returned delivery itself.
 */
export class GivenBackLedger {
  readonly #byKey = new Map<string, Returning[]>()
  #claimsSent = 0
  #claimsReturned = 0

  /** Takes note that a claim has been sent. Returns its number. */
  claimSent(): number {
    this.#claimsSent += 1
    return this.#claimsSent
  }

  /** Takes note that a claim is coming in: what was written before it was sent is forgotten. */
  claimReturned(claim: number): void {
    this.#claimsReturned = Math.max(this.#claimsReturned, claim)
    this.#forget((claimsBefore) => claimsBefore < claim)
  }

  /** Takes note that all a claim brought has been judged: it need not be remembered for that claim any more. */
  claimJudged(): void {
    if (this.#claimsReturned === this.#claimsSent) this.#forget(() => true)
  }

  /** A delivery goes back, or is lost, which the database may not know yet. */
  add(held: Held<LaneDelivery>): void {
    const { key } = held.delivery
    const returning = { held, claimsBefore: null }
    const known = this.#byKey.get(key)
    if (known === undefined) this.#byKey.set(key, [returning])
    else known.push(returning)
  }

  /** A return is written, or will never be. */
  written(held: Held<LaneDelivery>): void {
    const returning = this.#byKey.get(held.delivery.key)?.find((one) => one.held === held)
    if (returning === undefined) return
    returning.claimsBefore = this.#claimsSent
    this.claimJudged()
  }

  /** Whether something of this key goes back, or could not be written, and that is not known to be over. */
  isOpen(key: string): boolean {
    return this.#byKey.get(key)?.some(({ claimsBefore }) => claimsBefore === null) === true
  }

  /** Whether something earlier of its key goes back, or could not be written, and that is not known to be over. */
  isOpenBefore(held: Held<LaneDelivery>): boolean {
    const returning = this.#byKey.get(held.delivery.key) ?? []
    return returning.some((one) => one.claimsBefore === null && isAfter(held, one.held))
  }

  /** Whether a delivery that the current claim brought would overtake one that was given back. */
  overtakes(held: Held<LaneDelivery>): boolean {
    const returning = this.#byKey.get(held.delivery.key)
    if (returning === undefined) return false
    const itself = returning.findIndex((one) => one.held.delivery.position === held.delivery.position)
    // It comes again, so the claim has seen its return.
    if (itself >= 0) returning.splice(itself, 1)
    return returning.some((one) => isAfter(held, one.held))
  }

  #forget(isKnown: (claimsBefore: number) => boolean): void {
    for (const [key, returning] of this.#byKey) {
      const left = returning.filter(({ claimsBefore }) => claimsBefore === null || !isKnown(claimsBefore))
      if (left.length === 0) this.#byKey.delete(key)
      else if (left.length < returning.length) this.#byKey.set(key, left)
    }
  }
}

/** Whether one in hand stands behind the other. */
export function isAfter(one: Held<LaneDelivery>, other: Held<LaneDelivery>): boolean {
  return isLater(one.delivery, other.delivery)
}

/** Whether one stands behind the other. Positions are 64-bit numbers kept as text: the longer is the larger. */
export function isLater({ position: left }: DeliveryKey, { position: right }: DeliveryKey): boolean {
  return left.length === right.length ? left > right : left.length > right.length
}
