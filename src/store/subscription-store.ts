import type { OpenTransaction } from '../delivery/open-transaction.ts'
import type { OutboxEvent } from '../event/event.ts'

/** How far order goes: not at all, per ordering key (the aggregate by default), or over the whole subscription. */
export type OrderBy = 'none' | 'aggregate' | 'total'

/** How a subscription gets its events: by a delivery of each, or by reading the server's log. */
export type Engine = 'queue' | 'stream'

/** Where a new subscription begins. Only its first registration counts. */
export type StartFrom = 'now' | 'beginning' | Date

/** A subscription as its worker declares it. */
export interface SubscriptionDefinition {
  readonly name: string
  /** Stream names, `*` as a wildcard; null takes every stream. */
  readonly streams: readonly string[] | null
  /** Stored event types; null takes every type of those streams. */
  readonly eventTypes: readonly string[] | null
  readonly orderBy: OrderBy
  /** 0 without order; fixed for the life of the subscription. */
  readonly lanes: number
  readonly onDead: 'block' | 'continue'
  readonly maxAttempts: number
  readonly startFrom: StartFrom
  /** `'queue'` where nothing is said; fixed for the life of the subscription. */
  readonly engine?: Engine
}

/** A subscription as the database knows it. */
export interface RegisteredSubscription {
  readonly id: number
  readonly name: string
  readonly state: 'joining' | 'active' | 'retired'
  readonly orderBy: OrderBy
  readonly lanes: number
  /** Everything any version of the code has declared: it only widens, so that a rolling deploy loses nothing. */
  readonly eventTypes: readonly string[] | null
  readonly paused: boolean
  readonly engine: Engine
}

/** How a subscription is to be retired, and by whom. */
export interface RetireRequest {
  readonly operator: string
  readonly note: string | null
  /** True sets open deliveries aside; false refuses while there are any. */
  readonly discard: boolean
  /** True retires it although a live worker serves it. */
  readonly force: boolean
}

/** What retiring a subscription came to. */
export interface RetireReport {
  /** Deliveries that were open: each is DEAD now, with a dead letter that is resolved. */
  readonly discarded: number
  /** Dead letters from before that wait for a person still. They can be resolved, not retried. */
  readonly unresolvedDeadLetters: number
  /** Open deliveries that somebody had locked: each is set aside as the others were once it is let go, or is DONE. */
  readonly locked: number
}

/** Who listens, and since when. */
export interface SubscriptionStore {
  /** Registers or widens. Refuses a change of order or lanes with a SubscriptionConflictError. Idempotent. */
  register(definition: SubscriptionDefinition): Promise<RegisteredSubscription>
  /**
   * Moves every joining subscription on: waits for nothing, does one bounded step (barrier passed? sweep a chunk) and
   * returns the names still joining. Any worker may call it at any time.
   */
  advanceJoining(): Promise<readonly string[]>
  /** The oldest transaction that a joining subscription waits for, or null when none waits. */
  openTransaction(): Promise<OpenTransaction | null>
  /** Reads subscriptions by id, for pause and state. */
  subscriptions(ids: readonly number[]): Promise<readonly RegisteredSubscription[]>
  /** Stops or resumes claims of a subscription, for every worker at once. Recorded with the operator's name. */
  setPaused(
    name: string,
    paused: boolean,
    operator: string,
    note?: string | null,
  ): Promise<RegisteredSubscription>
  /** Reports up to `limit` events that no subscription matched and were not reported before. */
  takeUnmatched(limit: number, deadLetter: boolean): Promise<readonly OutboxEvent[]>
}
