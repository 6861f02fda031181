import type { ClaimedDelivery, DeliveryKey, Settled } from '../delivery/delivery.ts'
import type { OutboxEvent } from '../event/event.ts'

/** What a worker asks for when it takes deliveries of an unordered subscription. */
export interface ClaimRequest {
  readonly subscriptionId: number
  readonly workerId: string
  /** At most this many. Retries that are due get at most a quarter of it, so that they never delay new events. */
  readonly limit: number
  readonly leaseMs: number
}

/** A lane this worker owns. The epoch fences: it grows with every change of owner. */
export interface HeldLane {
  readonly lane: number
  readonly epoch: string
}

/** What a worker asks for when it takes deliveries of the lanes it owns. */
export interface LaneClaimRequest extends ClaimRequest {
  /** In the order they are to be read: the caller rotates them so that a full lane does not starve the others. */
  readonly lanes: readonly HeldLane[]
}

/** A delivery of an ordered subscription, with what its runner has to know about the key. */
export interface LaneDelivery extends ClaimedDelivery {
  readonly key: string
  /** True when it waited as held (a retry, a suspect): settling it lets the parked events of its key go on. */
  readonly wasHeld: boolean
}

/** A delivery that became DEAD, as alerts and observers need it. */
export interface NewDeadLetter {
  readonly deadLetterId: string
  readonly delivery: DeliveryKey
  readonly eventId: string
  readonly errorCode: string
}

/** A delivery that recovery made DEAD: nobody has its event in hand, so it comes along. */
export interface CrashedDelivery extends NewDeadLetter {
  readonly event: OutboxEvent
  readonly attempt: number
  readonly maxAttempts: number
}

/** What settling a batch came to. For lost deliveries nothing was written: another worker has them now. */
export interface SettleReport {
  readonly lost: readonly DeliveryKey[]
  readonly dead: readonly NewDeadLetter[]
}

/** What one heartbeat extends: everything this worker has in hand. */
export interface HeartbeatRequest {
  readonly workerId: string
  readonly subscriptionIds: readonly number[]
  readonly host: string
  readonly pid: number
  readonly leaseMs: number
  readonly deliveries: readonly ClaimedDelivery[]
  readonly lanes: readonly (HeldLane & { readonly subscriptionId: number })[]
}

/** What a heartbeat could not extend: leases that lapsed and were taken by others. */
export interface HeartbeatReport {
  readonly lostDeliveries: readonly DeliveryKey[]
  readonly lostLanes: readonly { readonly subscriptionId: number; readonly lane: number }[]
}

/** What was found of workers that vanished. */
export interface RecoverReport {
  /** Deliveries that went back to PENDING as suspects or for another attempt. */
  readonly returned: number
  readonly dead: readonly CrashedDelivery[]
  /** Suspects waiting now, by subscription: each must be claimed and run alone. */
  readonly suspects: ReadonlyMap<number, number>
}

/** 3 TAKE and 5 WRITE DOWN, for unordered subscriptions and what both kinds share. */
export interface QueueStore {
  /** Takes fresh deliveries and due retries under a lease. Commits at once; never blocks on another worker. */
  claim(request: ClaimRequest): Promise<readonly ClaimedDelivery[]>
  /** Takes one suspect that is due, or null. The caller runs it with nothing beside it. */
  claimSuspect(request: ClaimRequest & { readonly lanes?: readonly HeldLane[] }): Promise<LaneDelivery | null>
  /** Writes down how attempts ended. Each write is guarded by the lease's token in the statement. */
  settle(batch: readonly Settled[]): Promise<SettleReport>
  /** Lets parked events of these ordering keys be claimed again, because what they waited for is settled. */
  unpark(
    subscriptionId: number,
    keys: readonly { readonly lane: number; readonly key: string }[],
  ): Promise<void>
  /** Extends every lease in hand and tells which are lost. Judged and dated by the database's clock. */
  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReport>
  /**
   * Returns deliveries whose lease lapsed. Safe when many workers call it at once. Counts only suspects that this worker
   * could claim now.
   */
  recover(subscriptionIds: readonly number[], workerId?: string): Promise<RecoverReport>
  /** Forgets this worker, so that others need not wait for its lease to learn that it left. */
  leave(workerId: string): Promise<void>
}

/** What came of looking for lanes. */
export interface TakenLanes {
  readonly taken: readonly HeldLane[]
  readonly fairShare: number
  /** What the last owners of the taken lanes had killed themselves with. */
  readonly dead: readonly CrashedDelivery[]
}

/** 3 TAKE for ordered subscriptions: who may claim which lanes. */
export interface LaneStore {
  /**
   * Takes free or lapsed lanes up to a fair share of the live workers, and returns those it took. What their last
   * owner had in hand goes back first, in the same transaction. Also lets go what is parked behind nothing.
   */
  takeLanes(request: {
    readonly subscriptionId: number
    readonly workerId: string
    readonly leaseMs: number
    readonly held: number
  }): Promise<TakenLanes>
  /** Takes deliveries of owned lanes in position order, skipping keys that wait for an earlier event. */
  claimLanes(request: LaneClaimRequest): Promise<readonly LaneDelivery[]>
  /** Gives lanes back. The caller has settled or released everything of them. */
  releaseLanes(subscriptionId: number, workerId: string, lanes: readonly HeldLane[]): Promise<void>
}
