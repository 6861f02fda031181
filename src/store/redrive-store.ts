import type { DeadLetterReason } from './dead-letter-store.ts'

/** The most dead letters that one plan can name. */
export const MOST_PLANNED_IDS = 10_000

/** Which open dead letters a plan takes; what is left out does not narrow it. */
export interface RedriveFilter {
  readonly subscription?: string
  readonly stream?: string
  readonly eventType?: string
  readonly reason?: DeadLetterReason
  readonly errorCode?: string
  /** Those of one group, as `deadLetters.group` counts them. */
  readonly fingerprint?: string
  readonly orderingKey?: string
  /** Failed at this time or later. */
  readonly failedFrom?: Date
  /** Failed before this time. */
  readonly failedTo?: Date
  /** Only these, by number: at most 10,000. */
  readonly ids?: readonly string[]
}

/** How many letters of a plan one subscription, event type or ordering key has. */
export interface RedriveCount {
  readonly letters: number
  /** Those that come too late for their order: a later event of their key was handled already. */
  readonly reordered: number
}

/** What applying a plan would do. */
export interface RedrivePlan extends RedriveCount {
  readonly id: string
  /** Matching letters that cannot be delivered again: of retired subscriptions, or whose delivery is gone. */
  readonly unreachable: number
  readonly subscriptions: readonly (RedriveCount & { readonly subscription: string })[]
  readonly eventTypes: readonly (RedriveCount & { readonly eventType: string })[]
  /** How many ordering keys are concerned. */
  readonly keyCount: number
  /** The keys with the most letters, those that come too late first; at most 50. */
  readonly keys: readonly (RedriveCount & { readonly subscription: string; readonly orderingKey: string })[]
  /** It cannot be begun after this time. */
  readonly expiresAt: Date
}

/** Where a plan stands: `stopped` is by itself, because too many failed again. */
export type RedriveState = 'planned' | 'applying' | 'done' | 'stopped' | 'cancelled'

/**
 * Why a letter was passed over: it was decided on meanwhile, its delivery is not DEAD any more, its subscription is
 * retired, or it stands behind one of its key that is dead.
 */
export type RedriveSkip = 'resolved' | 'gone' | 'retired' | 'behind'

/** A re-driven event that has not ended, and whose it is. */
export interface OnItsWay {
  readonly subscription: string
  readonly eventId: string
}

/** How far a plan is. */
export interface RedriveProgress {
  readonly id: string
  readonly state: RedriveState
  readonly letters: number
  /** Not yet re-driven. */
  readonly waiting: number
  /** Re-driven so far: on their way, or ended in one of the ways below. */
  readonly driven: number
  readonly onTheirWay: number
  /** Any one of those: `why` tells what it waits for. Null where there is none. */
  readonly oneOnItsWay: OnItsWay | null
  readonly succeeded: number
  readonly failedAgain: number
  /** Re-driven, and waiting behind another dead letter of their key. */
  readonly blocked: number
  readonly skipped: Readonly<Record<RedriveSkip, number>>
  readonly appliedBy: string | null
  readonly expiresAt: Date
}

/** How fast a plan is applied, and when that is given up. */
export interface RedriveSettings {
  /** Null: as fast as they are handled. */
  readonly ratePerSecond: number | null
  /** How many may be on their way. */
  readonly atOnce: number
  /** Stops when this share of those that ended failed again. Null: never. */
  readonly stopWhenFailedShare: number | null
  /** Not judged before so many have ended. */
  readonly minSample: number
  /** True goes on with a plan that stopped by itself. */
  readonly resume: boolean
}

/** What one step of applying a plan did. */
export interface RedriveStep {
  readonly state: RedriveState
  readonly driven: number
  /** How long the rate wants the next step to wait. */
  readonly waitMs: number
}

/** One part of moving a key aside. */
export interface MovedAside {
  /** Waiting events that are dead letters now. */
  readonly moved: number
  /** False while some are left: they are in hand, locked, or more than one part. The key stays blocked until then. */
  readonly free: boolean
}

/** 5b SET ASIDE, many at once. Every act is logged with the operator in its transaction. */
export interface RedriveStore {
  planRedrive(filter: RedriveFilter): Promise<RedrivePlan>
  redriveProgress(planId: string): Promise<RedriveProgress>
  /** Begins, joins or resumes. A plan that is done stays so. */
  beginRedrive(planId: string, operator: string, settings: RedriveSettings): Promise<RedriveState>
  /** One step, in one transaction. Any number may call it at once. */
  stepRedrive(planId: string, operator: string, note: string | null): Promise<RedriveStep>
  cancelRedrive(planId: string, operator: string, note: string | null): Promise<void>
  /** One part: to be called until the key is free. */
  moveAside(
    subscription: string,
    orderingKey: string,
    operator: string,
    note: string | null,
  ): Promise<MovedAside>
}

/** Which dead letters of a subscription are re-driven without a person, and when. */
export interface PolicyRedrive {
  readonly name: string
  /** Error codes; `*` at the end stands for any rest. */
  readonly codes: readonly string[]
  readonly afterMs: number
  /** Each next time waits so many times as long. */
  readonly factor: number
  readonly atMost: number
}

/** What a policy did. */
export interface PolicyReport {
  readonly redriven: number
  /** Those it will not touch any more: it has tried as often as it may. */
  readonly leftToPerson: number
}

/** What workers re-drive by themselves. */
export interface PolicyStore {
  /** One bounded step. Safe when many workers call it at once; judged by the database's clock. */
  redriveByPolicy(subscriptionId: number, policy: PolicyRedrive): Promise<PolicyReport>
}
