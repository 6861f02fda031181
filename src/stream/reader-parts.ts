import type { DeliveryOutcome, Settlement } from '../delivery/delivery.ts'
import type { Observer } from '../observe/worker-events.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SoloGate } from '../runtime/gate.ts'
import type { Random } from '../runtime/random.ts'
import type { StreamStore } from '../store/stream-store.ts'
import type { LogDelivery } from './log-delivery.ts'

/** What reads the log for one subscription. */
export interface StreamReaderParts {
  readonly store: StreamStore
  readonly subscription: {
    readonly id: number
    readonly name: string
    readonly orderBy: 'none' | 'aggregate' | 'total'
  }
  readonly workerId: string
  readonly leaseMs: number
  readonly marginMs: number
  readonly concurrency: number
  /** Whether several of a key may be handed over at once: whoever takes them keeps their order. */
  readonly together: boolean
  /** The most of its log that the server may keep for this subscription. */
  readonly walBudgetBytes: number
  dispatch(delivery: LogDelivery): DeliveryOutcome | Promise<DeliveryOutcome>
  /** Aborts the signals of running handlers, and gives them up after the grace. */
  interrupt(reason: Error, graceMs: number): void
  decide(delivery: LogDelivery, outcome: DeliveryOutcome): Settlement
  readonly soloGate: SoloGate
  readonly clock: Clock
  readonly random: Random
  readonly observer: Observer
}

/** How often in a lease one asks whether the log is free, and extends it once it is taken. */
export const LOOKS_PER_LEASE = 4

/** How often a turn extends its lease, in milliseconds. */
export function beatEveryMs(leaseMs: number): number {
  return Math.min(leaseMs / LOOKS_PER_LEASE, LONGEST_BEAT_MS)
}

/** Each carries a snapshot into the log: what is found in the table after a gap is what came since. */
const LONGEST_BEAT_MS = 2_000
