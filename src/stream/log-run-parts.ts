import type { DeliveryOutcome, Settlement } from '../delivery/delivery.ts'
import type { Observer } from '../observe/worker-events.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SoloGate } from '../runtime/gate.ts'
import type { StreamLease, StreamStore } from '../store/stream-store.ts'
import type { LogDelivery } from './log-delivery.ts'

/** How the events of a log are handed over. */
export interface LogRunParts<Place> {
  readonly store: Pick<StreamStore, 'streamGate' | 'parkEvents'>
  readonly lease: StreamLease
  readonly subscription: string
  readonly orderBy: 'none' | 'aggregate' | 'total'
  readonly concurrency: number
  /** Whether several of a key may be handed over at once: whoever takes them keeps their order. */
  readonly together: boolean
  /** No event beyond this position has a delivery yet. */
  readonly parkedTo: bigint
  dispatch(delivery: LogDelivery): DeliveryOutcome | Promise<DeliveryOutcome>
  /** What is to become of an event whose attempt ended so. */
  decide(delivery: LogDelivery, outcome: DeliveryOutcome): Settlement
  /** Whether handlers may be started at this time of the clock: the lease was confirmed a short while before, and nobody paused it. */
  readonly isGood: (atMs: number) => boolean
  /** One place for two that nothing came between. */
  readonly mergePlaces: (earlier: Place, later: Place) => Place
  /** Everything before these places has ended; the last is the farthest. */
  onPassed(places: readonly Place[]): void
  /** It cannot go on: the lease is lost, or the database refused. */
  onFailed(error: unknown): void
  /** Whoever has to run alone in this process holds others back there. */
  readonly soloGate: SoloGate
  readonly clock: Clock
  readonly observer: Observer
}
