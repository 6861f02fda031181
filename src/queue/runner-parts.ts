import type { ClaimedDelivery, DeliveryOutcome, Settlement } from '../delivery/delivery.ts'
import type { Observer } from '../observe/worker-events.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SoloGate } from '../runtime/gate.ts'
import type { Random } from '../runtime/random.ts'
import type { Backlog } from './backlog.ts'
import type { ClaimLoopOptions } from './claim-loop.ts'
import type { Hand } from './hand.ts'
import type { Ended } from './report.ts'
import type { DeliverySource } from './source.ts'

/** How a subscription's deliveries are taken and run. */
export interface RunnerOptions extends ClaimLoopOptions {
  /** How long before its end a lease counts as lost, in milliseconds. */
  readonly marginMs: number
}

/** Where results go. */
export interface ResultSink<Delivery extends ClaimedDelivery> {
  add(ended: Ended<Delivery>): void
  hurry(): void
  flush(): Promise<void>
}

/** The part of a dispatcher that a runner needs. */
export interface DeliveryHandlers<Delivery extends ClaimedDelivery> {
  dispatch(delivery: Delivery): DeliveryOutcome | Promise<DeliveryOutcome>
  interrupt(
    reason: Error,
    options: { readonly graceMs: number; readonly which?: (delivery: Delivery) => boolean },
  ): number
}

/** What a runner is made of. */
export interface RunnerParts<Delivery extends ClaimedDelivery> {
  readonly subscription: { readonly id: number; readonly name: string }
  readonly options: RunnerOptions
  readonly source: DeliverySource<Delivery>
  readonly backlog: Backlog<Delivery>
  readonly hand: Hand<Delivery>
  readonly handlers: DeliveryHandlers<Delivery>
  readonly results: ResultSink<Delivery>
  /** What is to be written down for an attempt that ended so. */
  decide(delivery: Delivery, outcome: DeliveryOutcome): Settlement
  /** Writes down that it runs with nothing beside it. False if it must not run. */
  markAlone(delivery: Delivery): Promise<boolean>
  /** Whether handlers run on in this process that nobody waits for. */
  hasStrays(): boolean
  /** Told once a batch of results is written: for what may go on now. */
  afterSettled(written: readonly Ended<Delivery>[]): void
  readonly soloGate: SoloGate
  readonly clock: Clock
  readonly random: Random
  readonly observer: Observer
}
