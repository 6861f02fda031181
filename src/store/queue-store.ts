import type { ClaimedDelivery, DeliveryKey, Settled } from '../delivery/delivery.ts'
import type { EventIdentity, OutboxEvent } from '../event/event.ts'
import type { CommitpostError } from '../runtime/errors.ts'

/** What a worker asks for when it takes deliveries of an unordered subscription. */
export interface ClaimRequest {
  readonly subscriptionId: number
  readonly workerId: string
  /**
   * At most this many. Of all claims together a quarter is for retries that are due and the rest for new events, as long
   * as there are both: neither keeps the other from being claimed, also where one at a time is asked for.
   */
  readonly limit: number
  readonly leaseMs: number
  /**
   * Told once of a delivery that the database refuses to have claimed, by a trigger of the user's own. The others are
   * claimed; it is tried again later, and nothing of its key is claimed before it. Null where the event is gone.
   */
  readonly onRefused?: (refusal: CommitpostError, event: EventIdentity | null) => void
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

/** What a worker asks for when it takes suspects: of an ordered subscription, those of its lanes. */
export interface SuspectClaimRequest extends ClaimRequest {
  readonly lanes?: readonly HeldLane[]
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

/** What settling a batch came to. */
export interface SettleReport {
  /** Nothing was written for these: another worker has them now. */
  readonly lost: readonly DeliveryKey[]
  /** Those of the lost that are DONE or DEAD by now: perhaps by an earlier try of the caller's own that had no answer. */
  readonly over: readonly DeliveryKey[]
  readonly dead: readonly NewDeadLetter[]
  /** Nothing was written for these either: their handler's own transaction, which completed them, is committed. */
  readonly committed: readonly DeliveryKey[]
  /**
   * Those of the batch that are still leased but locked by a transaction that has not ended: to be offered again. And what is
   * to be DONE of an ordered subscription behind one of them on its key, or behind one that is lost and not over.
   */
  readonly busy: readonly Settled[]
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

/**
 * What a heartbeat could not extend, of those that it named and no others: a delivery may be named under two leases, an
 * old one whose end has not been confirmed and the one it was claimed under since.
 */
export interface HeartbeatReport {
  /** Leases that lapsed, and may be others' by now. */
  readonly lostDeliveries: readonly ClaimedDelivery[]
  readonly lostLanes: readonly { readonly subscriptionId: number; readonly lane: number }[]
  /** Locked by a transaction that has not ended: still leased, but for no longer than before. */
  readonly busyDeliveries: readonly ClaimedDelivery[]
}

/** What was found of workers that vanished. */
export interface RecoverReport {
  /** How many deliveries of each subscription were taken from workers that vanished, dead ones among them. */
  readonly returned: ReadonlyMap<number, number>
  readonly dead: readonly CrashedDelivery[]
  /** Suspects waiting now, by subscription, or some of them if there are many: they run apart from all else. */
  readonly suspects: ReadonlyMap<number, number>
  /** Which of the subscriptions are retired, and by whom, where that is known. */
  readonly retired: ReadonlyMap<number, string | null>
}

/** An ordering key with events that wait behind an earlier one. */
export interface ParkedKey {
  readonly lane: number
  readonly key: string
  /** How many events of the key, those already let go among them, may be claimed. */
  readonly most: number
}

/** 3 TAKE and 5 WRITE DOWN, for unordered subscriptions and what both kinds share. */
export interface QueueStore {
  /** Takes fresh deliveries and due retries under a lease. Commits at once; never blocks on another worker. */
  claim(request: ClaimRequest): Promise<readonly ClaimedDelivery[]>
  /**
   * Takes suspects that are due, oldest first, of an ordered subscription at most the head of each key. The caller runs
   * them with nothing else beside them; if it vanishes, none is charged for it but one that was marked.
   */
  claimSuspects(request: SuspectClaimRequest): Promise<readonly LaneDelivery[]>
  /**
   * Marks a delivery in hand as about to run with nothing at all beside it: if its worker vanishes now, it is charged for
   * that. False, and it must not run, where its lease is lost or somebody has its row locked for more than a moment.
   */
  markAlone(delivery: ClaimedDelivery): Promise<boolean>
  /**
   * Writes down how attempts ended. Each write is guarded by the lease's token in the statement. Nobody's transaction is
   * waited for, or for a moment only: what it has locked is reported as busy.
   */
  settle(batch: readonly Settled[]): Promise<SettleReport>
  /**
   * Lets parked events of these ordering keys be claimed again, because what they waited for is settled. Nothing of a
   * key whose first event waits for a retry or is dead. Tells of each key how many, if any.
   */
  unpark(subscriptionId: number, keys: readonly ParkedKey[]): Promise<ReadonlyMap<string, number>>
  /** Extends every lease in hand and tells which are lost. Judged and dated by the database's clock. */
  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReport>
  /**
   * Returns deliveries whose lease lapsed. Safe when many workers call it at once. Counts only suspects that this worker
   * could claim now. Tells which of the subscriptions are retired.
   */
  recover(subscriptionIds: readonly number[], workerId?: string): Promise<RecoverReport>
  /** Forgets this worker, so that others need not wait for its lease to learn that it left. */
  leave(workerId: string): Promise<void>
  /** Forgets workers that vanished a day ago or longer. */
  forgetWorkers(): Promise<void>
  /** Where the tables are partitioned: makes what is needed next. Returns how many periods that were. */
  tendPartitions(): Promise<number>
}

/** What came of looking for lanes. */
export interface TakenLanes {
  readonly taken: readonly HeldLane[]
  readonly fairShare: number
  /** What the last owners of the taken lanes had killed themselves with. */
  readonly dead: readonly CrashedDelivery[]
  /** Lanes that could not be taken, because the database refuses to have something of them returned, and why. */
  readonly refused: readonly { readonly lane: number; readonly error: unknown }[]
}

/** Owned lanes of which a claim may have taken something although its answer never came. */
export interface RenewLanesRequest {
  readonly subscriptionId: number
  readonly workerId: string
  readonly leaseMs: number
  /** `tried` is the last epoch that an earlier renewal without an answer may have come to, or the lane's own. */
  readonly lanes: readonly (HeldLane & { readonly tried: string })[]
  /** The leases of everything of these lanes that this worker has in hand, as far as it knows. */
  readonly tokens: readonly string[]
  /** Whether what comes back is a suspect: the answer that never came was about suspects. */
  readonly suspects: boolean
}

/** A lane that was taken anew. */
export interface RenewedLane extends HeldLane {
  /** True if something of it could not be returned, because somebody has it locked: nothing may be claimed behind it. */
  readonly isBlocked: boolean
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
    readonly held: readonly HeldLane[]
    /** An earlier look may have taken lanes although its answer never came: those are taken anew. */
    readonly unsure?: boolean
  }): Promise<TakenLanes>
  /**
   * Takes lanes anew that this worker owns, under new epochs, and returns what is in hand there without its knowing,
   * uncharged. From then on no claim that was sent before can take anything. Lanes that are missing from the answer are
   * as they were: not this worker's any more, or the database refuses to have something of them returned.
   */
  renewLanes(request: RenewLanesRequest): Promise<readonly RenewedLane[]>
  /** Takes deliveries of owned lanes in position order, skipping keys that wait for an earlier event. */
  claimLanes(request: LaneClaimRequest): Promise<readonly LaneDelivery[]>
  /** Gives lanes back. The caller has settled or released everything of them. */
  releaseLanes(subscriptionId: number, workerId: string, lanes: readonly HeldLane[]): Promise<void>
}
