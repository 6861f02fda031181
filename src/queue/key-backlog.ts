import type { Settlement } from '../delivery/delivery.ts'
import { PARK, RELEASE_NOW } from '../delivery/settlements.ts'
import type { LaneDelivery } from '../store/queue-store.ts'
import type { Backlog, GivenBack, Losses } from './backlog.ts'
import { GivenBackLedger, isAfter } from './given-back.ts'
import type { Held } from './hand.ts'
import { letsKeyGoOn } from './unparker.ts'

type HeldOfKey = Held<LaneDelivery>
type Returned = readonly GivenBack<LaneDelivery>[]

interface KeyState {
  readonly key: string
  /** In position order. */
  readonly waiting: HeldOfKey[]
  /** In position order; one at a time, unless they are handed over together. */
  readonly running: HeldOfKey[]
}

/** How events of a key follow each other. */
export interface KeyBacklogOptions {
  /** Whether a dead letter holds back what comes after it on its key. */
  readonly onDead: 'block' | 'continue'
  /**
   * Starts what was published first, whatever its key: for one at a time over the whole cluster.
   * @default false
   */
  readonly strictly?: boolean
  /**
   * How many of a key may be running: more than one only where whoever runs them keeps their order, and lets none of them
   * succeed behind one that did not.
   * @default 1
   */
  readonly together?: number
}

/**
 * For ordered subscriptions: of each ordering key one at a time, in position order, and many keys at once.
 *
 * The next of a key may start as soon as the one before has succeeded, without waiting for the database. When one
 * fails, the rest of its key goes back, and so does whatever a claim brings that could not know of it.
 */
export class KeyBacklog implements Backlog<LaneDelivery> {
  readonly #onDead: 'block' | 'continue'
  readonly #keys = new Map<string, KeyState>()
  /** Keys with something to start, longest waiting first. */
  readonly #ready = new Set<KeyState>()
  readonly #ledger = new GivenBackLedger()
  readonly #strictly: boolean
  readonly #together: number
  #closed = false

  constructor({ onDead, strictly = false, together = 1 }: KeyBacklogOptions) {
    this.#onDead = onDead
    this.#strictly = strictly
    this.#together = together
  }

  get ready(): number {
    return this.#ready.size
  }

  /** How many events of a key wait for their turn, or run. */
  count(key: string): number {
    const state = this.#keys.get(key)
    return state === undefined ? 0 : state.waiting.length + state.running.length
  }

  /** Whether something of a key is on its way back, or could not be written. */
  isReturning(key: string): boolean {
    return this.#ledger.isOpen(key)
  }

  claimSent(): number {
    return this.#ledger.claimSent()
  }

  offer(batch: readonly HeldOfKey[], claim: number): Returned {
    if (this.#closed) return batch.map((held) => this.#giveBack(held, RELEASE_NOW))
    this.#ledger.claimReturned(claim)
    const returned: GivenBack<LaneDelivery>[] = []
    for (const held of batch) {
      if (this.#ledger.overtakes(held)) returned.push(this.#giveBack(held, PARK))
      else this.#enqueue(held)
    }
    this.#ledger.claimJudged()
    return returned
  }

  next(): HeldOfKey | null {
    const state = this.#strictly ? this.#earliest() : this.#ready.values().next().value
    const held = state?.waiting.shift()
    if (state === undefined || held === undefined) return null
    state.running.push(held)
    this.#ready.delete(state)
    // At the end: the other keys have their turn first.
    if (this.#together > 1) this.#makeReady(state)
    return held
  }

  #earliest(): KeyState | undefined {
    let earliest: KeyState | undefined
    for (const state of this.#ready) {
      const [first, soFar] = [state.waiting[0], earliest?.waiting[0]]
      if (first !== undefined && (soFar === undefined || isAfter(soFar, first))) earliest = state
    }
    return earliest
  }

  adopt(suspects: readonly HeldOfKey[], claim: number): readonly HeldOfKey[] {
    this.#ledger.claimReturned(claim)
    const mayRun = (held: HeldOfKey): boolean => !this.#ledger.overtakes(held) && !this.#hasEarlier(held)
    const adopted = this.#closed ? [] : suspects.filter(mayRun)
    this.#ledger.claimJudged()
    for (const held of suspects) {
      if (adopted.includes(held)) this.#run(held)
      else this.#ledger.add(held)
    }
    return adopted
  }

  #run(held: HeldOfKey): void {
    const state = this.#stateOf(held.delivery.key)
    state.running.push(held)
    this.#ready.delete(state)
  }

  ended(held: HeldOfKey, settlement: Settlement, completed = false): Returned {
    // Its own transaction may have been rolled back: until that is known, nothing later of its key may start.
    return completed ? [] : this.#ended(held, settlement, held.lost)
  }

  #ended(held: HeldOfKey, settlement: Settlement, lost: boolean): Returned {
    const state = this.#stateOf(held.delivery.key)
    removeRunning(state, held)
    if (letsKeyGoOn(settlement, this.#onDead)) {
      // Given up before it was done: most likely it comes again, and nothing that follows it may be done before.
      if (lost) return this.#lostAfterAll(held)
      this.#makeReady(state)
      return []
    }
    this.#ledger.add(held)
    return this.#empty(state, isImmediateRelease(settlement) ? RELEASE_NOW : PARK)
  }

  unwritten(held: HeldOfKey, settlement: Settlement): Returned {
    // What did not let its key go on has stopped it when it ended; so has what waits to know how a transaction ended.
    if (!letsKeyGoOn(settlement, this.#onDead) || this.#isUndecided(held)) return []
    return this.#stop(held)
  }

  /** Whether one that is running may be DONE now: nothing earlier of its key is unwritten, or to be run again. */
  mayBeDone(delivery: LaneDelivery): boolean {
    const running = this.#keys.get(delivery.key)?.running.find((one) => one.delivery === delivery)
    return running !== undefined && !running.outrun && !this.#ledger.isOpenBefore(running)
  }

  settled(held: HeldOfKey, settlement: Settlement, lost: boolean): Returned {
    if (this.#isUndecided(held)) return this.#endedAtLast(held, settlement, lost)
    // It was done, but somebody else runs it again: nothing later of its key may start here before.
    const returned = lost && letsKeyGoOn(settlement, this.#onDead) ? this.#lostAfterAll(held) : []
    this.#ledger.written(held)
    return returned
  }

  /** What runs behind it has to run again after it. */
  #lostAfterAll(held: HeldOfKey): Returned {
    const running = this.#keys.get(held.delivery.key)?.running ?? []
    for (const one of running) if (isAfter(one, held)) one.outrun = true
    return this.#stop(held)
  }

  #isUndecided(held: HeldOfKey): boolean {
    return this.#keys.get(held.delivery.key)?.running.includes(held) === true
  }

  #endedAtLast(held: HeldOfKey, settlement: Settlement, lost: boolean): Returned {
    const returned = this.#ended(held, lost ? PARK : settlement, false)
    this.#ledger.written(held)
    return returned
  }

  lose(lost: readonly HeldOfKey[], known: boolean): Losses<LaneDelivery> {
    const dropped: HeldOfKey[] = []
    const givenBack: GivenBack<LaneDelivery>[] = []
    for (const held of lost) {
      const state = this.#keys.get(held.delivery.key)
      if (state === undefined || !state.waiting.includes(held)) continue
      const all = state.waiting.splice(0)
      state.waiting.push(...all.filter((one) => !one.lost))
      const gone = all.filter((one) => one.lost)
      // Until the database is told it takes them for in hand, and a claim may bring what stands behind them.
      for (const one of gone) this.#ledger.add(one)
      givenBack.push(...this.#empty(state, PARK))
      if (known) for (const one of gone) this.#ledger.written(one)
      dropped.push(...gone)
    }
    return { dropped, givenBack }
  }

  afterOutrun(settlement: Settlement): Settlement {
    return letsKeyGoOn(settlement, this.#onDead) ? PARK : settlement
  }

  close(): Returned {
    this.#closed = true
    return [...this.#keys.values()].flatMap((state) => this.#empty(state, RELEASE_NOW))
  }

  #hasEarlier(held: HeldOfKey): boolean {
    const state = this.#keys.get(held.delivery.key)
    if (state === undefined) return false
    const [first] = state.waiting
    return state.running.length > 0 || (first !== undefined && isAfter(held, first))
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
    const state: KeyState = { key, waiting: [], running: [] }
    this.#keys.set(key, state)
    return state
  }

  #makeReady(state: KeyState): void {
    if (state.running.length >= this.#together) return
    if (state.waiting.length > 0) this.#ready.add(state)
    else if (state.running.length === 0) this.#keys.delete(state.key)
  }

  /** Nothing later than this one may run. */
  #stop(held: HeldOfKey): Returned {
    if (held.stoppedKey) return []
    held.stoppedKey = true
    this.#ledger.add(held)
    const state = this.#keys.get(held.delivery.key)
    return state === undefined ? [] : this.#empty(state, PARK)
  }

  #empty(state: KeyState, settlement: Settlement): Returned {
    this.#ready.delete(state)
    const returned = state.waiting.splice(0).map((held) => this.#giveBack(held, settlement))
    if (state.running.length === 0) this.#keys.delete(state.key)
    return returned
  }

  #giveBack(held: HeldOfKey, settlement: Settlement): GivenBack<LaneDelivery> {
    this.#ledger.add(held)
    return { held, settlement }
  }
}

function removeRunning({ running }: KeyState, held: HeldOfKey): void {
  const index = running.indexOf(held)
  if (index >= 0) running.splice(index, 1)
}

function isImmediateRelease(settlement: Settlement): boolean {
  return settlement.kind === 'release' && settlement.delayMs === 0
}
