import type { Clock } from '../runtime/clock.ts'
import { jittered } from '../runtime/periodic.ts'
import type { Random } from '../runtime/random.ts'
import type {
  CrashedDelivery,
  HeldLane,
  LaneClaimRequest,
  LaneDelivery,
  LaneStore,
  QueueStore,
} from '../store/queue-store.ts'
import { type LeaseLimits, LeaseTerm } from './hand.ts'
import type { DeliverySource, OwnedLane, Taken, TakerOptions } from './source.ts'

/** What a source of lanes is made of. */
export interface LaneSourceParts {
  readonly store: LaneStore & Pick<QueueStore, 'claimSuspects'>
  readonly options: TakerOptions & LeaseLimits
  readonly clock: Clock
  readonly random: Random
  /** How often to look for lanes to take or to give back, in milliseconds. */
  readonly shareEveryMs: number
  /** The most deliveries of all lanes together to have in hand, and the least of one lane to ask for more. */
  readonly window: { readonly most: number; readonly least: number }
  /** Told of what the last owners of lanes died of. */
  onCrashed(dead: readonly CrashedDelivery[]): void
  /** How many deliveries of a lane are in hand. */
  readonly countInHand: (lane: number) => number
}

const JITTER = 0.2

class Lane implements OwnedLane {
  readonly lane: number
  readonly epoch: string
  readonly term: LeaseTerm
  /** True once nothing more is claimed of it: it is given back when its last delivery is settled. */
  draining = false

  constructor({ lane, epoch }: HeldLane, confirmedAtMs: number) {
    this.lane = lane
    this.epoch = epoch
    this.term = new LeaseTerm(confirmedAtMs)
  }
}

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

  constructor(parts: LaneSourceParts) {
    this.#parts = parts
  }

  async tend(): Promise<void> {
    await this.#giveBackDrained()
    if (this.#parts.clock.monotonicMs() < this.#shareAtMs) return
    await this.#share()
  }

  take(limit: number): Promise<Taken<LaneDelivery>> {
    const { store } = this.#parts
    return this.#takeOf(this.#withRoom(this.#inTurn()), limit, (request) => store.claimLanes(request))
  }

  takeSuspects(limit: number): Promise<Taken<LaneDelivery>> {
    const { store } = this.#parts
    return this.#takeOf(this.#inTurn(), limit, (request) => store.claimSuspects(request))
  }

  lanes(): readonly OwnedLane[] {
    return [...this.#lanes.values()]
  }

  loseLanes(lanes: readonly OwnedLane[]): readonly number[] {
    // A lane that was lost and taken again is another lane: it has another epoch.
    const lost = lanes.filter((lane) => this.#lanes.get(lane.lane) === lane).map(({ lane }) => lane)
    for (const lane of lost) this.#lanes.delete(lane)
    if (lost.length > 0) this.#shareAtMs = Number.NEGATIVE_INFINITY
    return lost
  }

  expireLanes(nowMs: number): readonly number[] {
    const { leaseMs, marginMs } = this.#parts.options
    const isOver = ({ term }: Lane): boolean => nowMs - term.confirmedAtMs > leaseMs - marginMs
    return this.loseLanes([...this.#lanes.values()].filter(isOver))
  }

  async leave(): Promise<void> {
    await this.#release([...this.#lanes.values()])
  }

  async #takeOf(
    lanes: readonly Lane[],
    limit: number,
    claim: (request: LaneClaimRequest) => Promise<readonly LaneDelivery[]>,
  ): Promise<Taken<LaneDelivery>> {
    const confirmedAtMs = this.#confirmedAtMs(lanes)
    if (lanes.length === 0) return { deliveries: [], confirmedAtMs }
    try {
      const deliveries = await claim({ ...this.#parts.options, limit, lanes: lanes.map(toHeldLane) })
      return { deliveries, confirmedAtMs }
    } catch (error) {
      // It may have been done: then the lanes hold deliveries that nobody runs, and later ones must not overtake them.
      // Whoever takes the lanes next, perhaps this worker itself, returns those first.
      this.#drain(lanes)
      throw error
    }
  }

  async #share(): Promise<void> {
    const { store, options, clock, random, shareEveryMs } = this.#parts
    const sentAtMs = clock.monotonicMs()
    const { subscriptionId, workerId, leaseMs } = options
    const held = [...this.#lanes.values()].map(toHeldLane)
    const unsure = sentAtMs < this.#unsureUntilMs
    const request = { subscriptionId, workerId, leaseMs, held, unsure }
    const { taken, fairShare, dead } = await store.takeLanes(request).catch((error: unknown) => {
      this.#unsureUntilMs = clock.monotonicMs() + leaseMs
      throw error
    })
    this.#parts.onCrashed(dead)
    this.#shareAtMs = sentAtMs + jittered(shareEveryMs, JITTER, random)
    for (const lane of taken) this.#lanes.set(lane.lane, new Lane(lane, sentAtMs))
    this.#drain(this.#surplus(fairShare))
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

  async #giveBackDrained(): Promise<void> {
    const drained = [...this.#lanes.values()].filter(
      (lane) => lane.draining && this.#parts.countInHand(lane.lane) === 0,
    )
    if (drained.length === 0) return
    await this.#release(drained)
    this.#shareAtMs = Number.NEGATIVE_INFINITY
  }

  async #release(lanes: readonly Lane[]): Promise<void> {
    if (lanes.length === 0) return
    const { store, options } = this.#parts
    await store.releaseLanes(options.subscriptionId, options.workerId, lanes.map(toHeldLane))
    for (const { lane } of lanes) this.#lanes.delete(lane)
  }

  /** Another lane first each time, so that one with a long queue does not starve the rest. */
  #inTurn(): readonly Lane[] {
    const lanes = [...this.#lanes.values()].filter((lane) => !lane.draining)
    const first = lanes.length === 0 ? 0 : this.#turn % lanes.length
    this.#turn += 1
    return [...lanes.slice(first), ...lanes.slice(0, first)]
  }

  /** A lane whose events pile up behind a slow key must not fill the hand and keep the other lanes from being read. */
  #withRoom(lanes: readonly Lane[]): readonly Lane[] {
    const { window, countInHand } = this.#parts
    const share = Math.max(window.least, Math.ceil(window.most / Math.max(1, lanes.length)))
    return lanes.filter(({ lane }) => countInHand(lane) < share)
  }

  // The lease of a delivery is its lane's: it was confirmed when the lane's was, not when it was claimed.
  #confirmedAtMs(lanes: readonly Lane[]): number {
    return Math.min(this.#parts.clock.monotonicMs(), ...lanes.map(({ term }) => term.confirmedAtMs))
  }
}

function toHeldLane({ lane, epoch }: OwnedLane): HeldLane {
  return { lane, epoch }
}
