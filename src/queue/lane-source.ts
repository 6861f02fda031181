import type { Clock } from '../runtime/clock.ts'
import { jittered } from '../runtime/periodic.ts'
import type { Random } from '../runtime/random.ts'
import type {
  CrashedDelivery,
  LaneClaimRequest,
  LaneDelivery,
  LaneStore,
  QueueStore,
  TakenLanes,
} from '../store/queue-store.ts'
import type { LeaseLimits } from './hand.ts'
import { type Fear, Lane, toHeldLane } from './owned-lane.ts'
import type { DeliverySource, OwnedLane, Taken, TakerOptions } from './source.ts'

/** What a source of lanes is made of. */
export interface LaneSourceParts {
  readonly store: LaneStore & Pick<QueueStore, 'claimSuspects'>
  readonly options: TakerOptions & LeaseLimits
  readonly clock: Clock
  readonly random: Random
  /** How often to look for lanes to take or to give back, in milliseconds. */
  readonly shareEveryMs: number
  /**
   * The most deliveries of all lanes together to have in hand, the least of one lane to ask for more, and the most text of
   * all lanes.
   */
  readonly window: { readonly most: number; readonly least: number; readonly characters: number }
  /** Told of what the last owners of lanes died of. */
  onCrashed(dead: readonly CrashedDelivery[]): void
  /** Told of a lane that cannot be taken, once for as long as that lasts. */
  onRefused(error: unknown): void
  /** How many deliveries of a lane are in hand. */
  readonly countInHand: (lane: number) => number
  /** How much text those are. */
  readonly charactersInHand: (lane: number) => number
  /** The leases of what is in hand of some lanes. */
  readonly tokensInHand: (lanes: readonly number[]) => readonly string[]
}

const JITTER = 0.2
/** So many lanes of large events may be as full of text as they may be, and the others still have room. */
const LANES_WITH_MUCH = 4

/**
 * Claims of an ordered subscription: of the lanes this worker owns, which are taken and given back so that all live
 * workers have a fair share. All of it happens between claims, so that no claim of a lane is under way when it goes.
 */
export class LaneSource implements DeliverySource<LaneDelivery> {
  readonly #parts: LaneSourceParts
  readonly #lanes = new Map<number, Lane>()
  #shareAtMs = Number.NEGATIVE_INFINITY
  /** Until then an answer that never came may have given this worker lanes it does not know of. */
  #unsureUntilMs = Number.NEGATIVE_INFINITY
  #turn = 0
  /** Lanes that the last claim left out, because there was no room for more of them. */
  #leftOut: readonly Lane[] = []
  #refused: ReadonlySet<number> = new Set()

  constructor(parts: LaneSourceParts) {
    this.#parts = parts
  }

  async tend(): Promise<void> {
    await this.#renew()
    if (await this.giveBackIdle()) this.#shareAtMs = Number.NEGATIVE_INFINITY
    if (this.#parts.clock.monotonicMs() < this.#shareAtMs) return
    await this.#share()
  }

  take(limit: number): Promise<Taken<LaneDelivery>> {
    const { store } = this.#parts
    const lanes = this.#inTurn()
    const withRoom = lanes.filter((lane) => this.#hasRoom(lane))
    this.#leftOut = withRoom.length === lanes.length ? [] : lanes.filter((lane) => !withRoom.includes(lane))
    return this.#takeOf(withRoom, limit, 'deliveries', (request) => store.claimLanes(request))
  }

  takeSuspects(limit: number): Promise<Taken<LaneDelivery>> {
    const { store } = this.#parts
    return this.#takeOf(this.#inTurn(), limit, 'suspects', (request) => store.claimSuspects(request))
  }

  lanes(): readonly OwnedLane[] {
    return [...this.#lanes.values()]
  }

  hasRoomAgain(): boolean {
    return this.#leftOut.some((lane) => this.#hasRoom(lane))
  }

  loseLanes(lanes: readonly OwnedLane[]): readonly number[] {
    // A heartbeat that named the epoch before a renewal knows nothing of the lane; the renewal does.
    return this.#forget(lanes.filter(({ lane }) => this.#lanes.get(lane)?.fear === null))
  }

  expireLanes(nowMs: number): readonly number[] {
    const { leaseMs, marginMs } = this.#parts.options
    const isOver = ({ term }: Lane): boolean => nowMs - term.confirmedAtMs > leaseMs - marginMs
    return this.#forget([...this.#lanes.values()].filter(isOver))
  }

  close(): void {
    this.#drain([...this.#lanes.values()])
  }

  async giveBackIdle(): Promise<boolean> {
    const isIdle = ({ lane, draining }: Lane): boolean => draining && this.#parts.countInHand(lane) === 0
    const idle = [...this.#lanes.values()].filter(isIdle)
    await this.#release(idle)
    return idle.length > 0
  }

  async leave(): Promise<void> {
    await this.#release([...this.#lanes.values()])
  }

  #forget(lanes: readonly OwnedLane[]): readonly number[] {
    // A lane that was lost and taken again is another lane: it has another epoch.
    const lost = lanes.filter((lane) => this.#lanes.get(lane.lane) === lane).map(({ lane }) => lane)
    for (const lane of lost) this.#lanes.delete(lane)
    if (lost.length > 0) this.#shareAtMs = Number.NEGATIVE_INFINITY
    return lost
  }

  async #takeOf(
    lanes: readonly Lane[],
    limit: number,
    what: Fear,
    claim: (request: LaneClaimRequest) => Promise<readonly LaneDelivery[]>,
  ): Promise<Taken<LaneDelivery>> {
    const confirmedAtMs = this.#confirmedAtMs(lanes)
    if (lanes.length === 0) return { deliveries: [], confirmedAtMs, isAll: true }
    try {
      const deliveries = await claim({ ...this.#parts.options, limit, lanes: lanes.map(toHeldLane) })
      // Of lanes a claim sees so many rows and no more, and some of those may have to wait.
      return { deliveries, confirmedAtMs, isAll: deliveries.length === 0 }
    } catch (error) {
      // It may have been done: then the lanes hold deliveries that nobody runs, and later ones must not overtake them.
      for (const lane of lanes) lane.fear ??= what
      throw error
    }
  }

  /**
   * Has what a claim without an answer may have taken returned. What is in hand stays there, and of lanes that a claim
   * was not about nothing changes.
   */
  async #renew(): Promise<void> {
    const feared = [...this.#lanes.values()].filter(({ fear }) => fear !== null)
    if (feared.length === 0) return
    const { store, options, tokensInHand } = this.#parts
    const { subscriptionId, workerId, leaseMs, marginMs } = options
    const request = {
      subscriptionId,
      workerId,
      // A heartbeat under way may extend deliveries by its own time, and they must not outlive their lane.
      leaseMs: leaseMs + marginMs,
      lanes: feared.map((lane) => ({ ...toHeldLane(lane), tried: String(lane.tried) })),
      tokens: tokensInHand(feared.map(({ lane }) => lane)),
      suspects: feared.some(({ fear }) => fear === 'suspects'),
    }
    const renewed = await store.renewLanes(request).catch((error: unknown) => {
      for (const lane of feared) lane.tried += 1n
      throw error
    })
    const anew = new Map(renewed.map((one) => [one.lane, one]))
    for (const lane of feared) {
      // Given up meanwhile, by this process's own clock.
      if (this.#lanes.get(lane.lane) !== lane) continue
      const one = anew.get(lane.lane)
      const next = one === undefined ? lane : new Lane(one, lane.term)
      next.fear = null
      // Whoever takes it next, perhaps this worker itself, returns what this one could not have returned.
      next.draining = lane.draining || one === undefined || one.isBlocked
      this.#lanes.set(lane.lane, next)
    }
  }

  async #share(): Promise<void> {
    const { store, options, clock, random, shareEveryMs } = this.#parts
    const sentAtMs = clock.monotonicMs()
    const { subscriptionId, workerId, leaseMs } = options
    const held = [...this.#lanes.values()].map(toHeldLane)
    const unsure = sentAtMs < this.#unsureUntilMs
    const request = { subscriptionId, workerId, leaseMs, held, unsure }
    const { taken, fairShare, dead, refused } = await store.takeLanes(request).catch((error: unknown) => {
      this.#unsureUntilMs = clock.monotonicMs() + leaseMs
      throw error
    })
    this.#parts.onCrashed(dead)
    this.#tellRefused(refused)
    this.#shareAtMs = sentAtMs + jittered(shareEveryMs, JITTER, random)
    for (const lane of taken) this.#lanes.set(lane.lane, Lane.taken(lane, sentAtMs))
    this.#drain(this.#surplus(fairShare))
  }

  #tellRefused(refused: TakenLanes['refused']): void {
    for (const { lane, error } of refused) if (!this.#refused.has(lane)) this.#parts.onRefused(error)
    this.#refused = new Set(refused.map(({ lane }) => lane))
  }

  /** More than its share: those with the least in hand go first, as they go soonest. */
  #surplus(fairShare: number): readonly Lane[] {
    const busy = [...this.#lanes.values()]
      .filter((lane) => !lane.draining)
      .map((lane) => ({ lane, inHand: this.#parts.countInHand(lane.lane) }))
      .toSorted((a, b) => a.inHand - b.inHand)
    return busy.slice(0, Math.max(0, busy.length - fairShare)).map(({ lane }) => lane)
  }

  #drain(lanes: readonly Lane[]): void {
    for (const lane of lanes) lane.draining = true
  }

  async #release(lanes: readonly Lane[]): Promise<void> {
    if (lanes.length === 0) return
    const { store, options } = this.#parts
    await store.releaseLanes(options.subscriptionId, options.workerId, lanes.map(toHeldLane))
    for (const { lane } of lanes) this.#lanes.delete(lane)
  }

  /** Another lane first each time, so that one with a long queue does not starve the rest. */
  #inTurn(): readonly Lane[] {
    const lanes = [...this.#lanes.values()].filter(({ isOpen }) => isOpen)
    const first = lanes.length === 0 ? 0 : this.#turn % lanes.length
    this.#turn += 1
    return [...lanes.slice(first), ...lanes.slice(0, first)]
  }

  /**
   * A lane whose events pile up behind a slow key must not fill the hand and keep the other lanes from being read. While
   * those have little in hand, one with a busy key may have more than its share: twice what is left free.
   */
  #hasRoom({ lane }: Lane): boolean {
    const { window, countInHand, charactersInHand } = this.#parts
    const lanes = [...this.#lanes.keys()]
    if (charactersInHand(lane) >= window.characters / Math.min(LANES_WITH_MUCH, lanes.length)) return false
    const share = Math.max(window.least, Math.ceil(window.most / Math.max(1, lanes.length)))
    const inHand = countInHand(lane)
    if (inHand < share) return true
    const free = window.most - lanes.reduce((sum, one) => sum + countInHand(one), 0)
    return inHand < free * 2
  }

  // The lease of a delivery is its lane's: it was confirmed when the lane's was, not when it was claimed.
  #confirmedAtMs(lanes: readonly Lane[]): number {
    return Math.min(this.#parts.clock.monotonicMs(), ...lanes.map(({ term }) => term.confirmedAtMs))
  }
}
