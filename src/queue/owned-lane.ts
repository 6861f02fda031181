import type { HeldLane } from '../store/queue-store.ts'
import { LeaseTerm } from './hand.ts'
import type { OwnedLane } from './source.ts'

/** What kind of claim may have taken something of a lane although its answer never came. */
export type Fear = 'deliveries' | 'suspects'

/** A lane of a source, and what may be done with it. */
export class Lane implements OwnedLane {
  readonly lane: number
  readonly epoch: string
  readonly term: LeaseTerm
  /** True once nothing more is claimed of it: it is given back when its last delivery is settled. */
  draining = false
  /** Until it is renewed nothing is claimed of it: later events would overtake what nobody knows of. */
  fear: Fear | null = null
  /** The epoch that the last renewal without an answer may have come to. */
  tried: bigint

  constructor({ lane, epoch }: HeldLane, term: LeaseTerm) {
    this.lane = lane
    this.epoch = epoch
    this.tried = BigInt(epoch)
    this.term = term
  }

  /** A lane that this worker has just taken. */
  static taken(lane: HeldLane, sentAtMs: number): Lane {
    return new Lane(lane, new LeaseTerm(sentAtMs))
  }

  /** Whether it may be claimed of. */
  get isOpen(): boolean {
    return !this.draining && this.fear === null
  }
}

/** A lane as the store names it. */
export function toHeldLane({ lane, epoch }: OwnedLane): HeldLane {
  return { lane, epoch }
}
