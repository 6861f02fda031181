import type { Settlement } from '../delivery/delivery.ts'
import type { LaneDelivery } from '../store/queue-store.ts'
import { type Backlog, type GivenBack, type Losses, PARK, RELEASE_NOW } from './backlog.ts'
import type { Held } from './hand.ts'
import { letsKeyGoOn } from './unparker.ts'

type HeldOfKey = Held<LaneDelivery>
type Returned = readonly GivenBack<LaneDelivery>[]

interface KeyState {
  readonly key: string
  /** In position order. */
  readonly waiting: HeldOfKey[]
  running: HeldOfKey | null
}

/** Why a key stands still: until the database knows of the failure, claims may still return later events of the key. */
interface Taint {
  readonly by: HeldOfKey
  /** The last claim that was sent before the failure was written down; null while it is not. */
  claimsBefore: number | null
}

/**
 * For ordered subscriptions: of each ordering key one at a time, in position order, and many keys at once.
 *
 * The next of a key may start as soon as the one before has succeeded, without waiting for the database. When one
 * fails, the rest of its key goes back, and so does whatever a claim returns that was sent before the failure was
 * written down: such a claim could not know.
 */
export class KeyBacklog implements Backlog<LaneDelivery> {
  readonly #onDead: 'block' | 'continue'
  readonly #keys = new Map<string, KeyState>()
  /** Keys with something to start, longest waiting first. */
  readonly #ready = new Set<KeyState>()
  readonly #taints = new Map<string, Taint>()
  #closed = false
  #claimsSent = 0
  #claimsReturned = 0

  constructor(onDead: 'block' | 'continue') {
    this.#onDead = onDead
  }

  get ready(): number {
    return this.#ready.size
  }

  claimSent(): number {
    this.#claimsSent += 1
    return this.#claimsSent
  }

  offer(batch: readonly HeldOfKey[], claim: number): Returned {
    this.#claimsReturned = Math.max(this.#claimsReturned, claim)
    this.#clearTaints((claimsBefore) => claimsBefore < claim)
    const returned = this.#closed ? batch.map((held) => giveBack(held, RELEASE_NOW)) : this.#enqueueAll(batch)
    this.#clearTaints(() => this.#claimsReturned === this.#claimsSent)
    return returned
  }

  next(): HeldOfKey | null {
    for (const state of this.#ready) {
      this.#ready.delete(state)
      const held = state.waiting.shift()
      if (held === undefined) continue
      state.running = held
      return held
    }
    return null
  }

  adopt(held: HeldOfKey): void {
    const state = this.#stateOf(held.delivery.key)
    state.running = held
    this.#ready.delete(state)
  }

  ended(held: HeldOfKey, settlement: Settlement): Returned {
    const { key } = held.delivery
    const state = this.#stateOf(key)
    state.running = null
    if (letsKeyGoOn(settlement, this.#onDead)) {
      this.#makeReady(state)
      return []
    }
    this.#taints.set(key, { by: held, claimsBefore: null })
    return this.#empty(state, isImmediateRelease(settlement) ? RELEASE_NOW : PARK)
  }

  settled(held: HeldOfKey, settlement: Settlement, lost: boolean): Returned {
    const { key } = held.delivery
    const taint = this.#taints.get(key)
    if (taint?.by === held) {
      taint.claimsBefore = this.#claimsSent
      this.#clearTaints(() => this.#claimsReturned === this.#claimsSent)
      return []
    }
    // It was done, but somebody else runs it again: nothing later of its key may start here before.
    return lost && letsKeyGoOn(settlement, this.#onDead) ? this.#stop(held) : []
  }

  lose(lost: readonly HeldOfKey[]): Losses<LaneDelivery> {
    const dropped: HeldOfKey[] = []
    const givenBack: GivenBack<LaneDelivery>[] = []
    for (const held of lost) {
      const waiting = this.#keys.get(held.delivery.key)?.waiting
      const index = waiting?.indexOf(held) ?? -1
      if (waiting === undefined || index < 0) continue
      const [kept, gone] = partition(waiting.splice(0), (one) => !one.lost)
      waiting.push(...kept)
      dropped.push(...gone)
      givenBack.push(...this.#stop(held))
    }
    return { dropped, givenBack }
  }

  close(): Returned {
    this.#closed = true
    return [...this.#keys.values()].flatMap((state) => this.#empty(state, RELEASE_NOW))
  }

  #enqueueAll(batch: readonly HeldOfKey[]): Returned {
    const returned: GivenBack<LaneDelivery>[] = []
    for (const held of batch) {
      if (this.#taints.has(held.delivery.key)) returned.push(giveBack(held, PARK))
      else this.#enqueue(held)
    }
    return returned
  }

  #enqueue(held: HeldOfKey): void {
    const state = this.#stateOf(held.delivery.key)
    // Claims return positions in order; an earlier one can only follow where publishers do not lock the key.
    let index = state.waiting.length
    while (index > 0 && isAfter(state.waiting[index - 1] as HeldOfKey, held)) index -= 1
    state.waiting.splice(index, 0, held)
    this.#makeReady(state)
  }

  #stateOf(key: string): KeyState {
    const known = this.#keys.get(key)
    if (known !== undefined) return known
    const state: KeyState = { key, waiting: [], running: null }
    this.#keys.set(key, state)
    return state
  }

  #makeReady(state: KeyState): void {
    if (state.running !== null) return
    if (state.waiting.length > 0) this.#ready.add(state)
    else this.#keys.delete(state.key)
  }

  #stop(held: HeldOfKey): Returned {
    const { key } = held.delivery
    this.#taints.set(key, { by: held, claimsBefore: this.#claimsSent })
    this.#clearTaints(() => this.#claimsReturned === this.#claimsSent)
    const state = this.#keys.get(key)
    return state === undefined ? [] : this.#empty(state, PARK)
  }

  #empty(state: KeyState, settlement: Settlement): Returned {
    this.#ready.delete(state)
    const returned = state.waiting.splice(0).map((held) => giveBack(held, settlement))
    if (state.running === null) this.#keys.delete(state.key)
    return returned
  }

  // Sound once every claim that has not come back was sent after the failure was written down: the database knows.
  #clearTaints(isOver: (claimsBefore: number) => boolean): void {
    if (this.#taints.size === 0) return
    for (const [key, { claimsBefore }] of this.#taints) {
      if (claimsBefore !== null && isOver(claimsBefore)) this.#taints.delete(key)
    }
  }
}

function partition<Item>(items: readonly Item[], isLeft: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isLeft), items.filter((item) => !isLeft(item))]
}

function isImmediateRelease(settlement: Settlement): boolean {
  return settlement.kind === 'release' && settlement.delayMs === 0
}

/** Positions are 64-bit numbers kept as text: the longer is the larger. */
function isAfter(a: HeldOfKey, b: HeldOfKey): boolean {
  const [left, right] = [a.delivery.position, b.delivery.position]
  return left.length === right.length ? left > right : left.length > right.length
}

function giveBack(held: HeldOfKey, settlement: Settlement): GivenBack<LaneDelivery> {
  return { held, settlement }
}
