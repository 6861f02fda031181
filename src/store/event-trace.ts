import type { OpenTransaction } from '../delivery/open-transaction.ts'
import type { DeadLetter } from './dead-letter-store.ts'

/** What an event is, without what it carries. */
export interface TracedEvent {
  readonly position: string
  readonly stream: string
  readonly eventType: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly createdAt: Date
}

/** Another delivery of the same key that has to end first. */
export interface Blocker {
  readonly eventId: string
  readonly status: 'PENDING' | 'PROCESSING' | 'DEAD'
  /** Of a DEAD one: as of its dead letter. */
  readonly redriveAt: DeadLetter['redriveAt']
}

/** How a delivery stands, as the database has it. */
export interface TracedDelivery {
  readonly status: 'PENDING' | 'PROCESSING' | 'DONE' | 'DEAD'
  readonly attempts: number
  readonly maxAttempts: number
  readonly suspect: boolean
  /** When it may be tried again; null where it may be at once, or waits behind another. */
  readonly nextRetryAt: Date | null
  /** True while that time has not come, by the database's clock. */
  readonly isRetryAhead: boolean
  readonly lockedBy: string | null
  readonly lockedUntil: Date | null
  /** True for a lease that has lapsed, by the database's clock. */
  readonly isLapsed: boolean
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly processedAt: Date | null
}

/** A dead letter of the event. */
export interface TracedLetter {
  readonly id: string
  readonly failedAt: Date
  readonly resolved: boolean
  readonly resolvedBy: string | null
  readonly redriveAt: DeadLetter['redriveAt']
}

/** One subscription on the way of an event. */
export interface SubscriptionTrace {
  readonly subscription: string
  readonly state: 'joining' | 'active' | 'retired'
  /** False for one that is joining in order and gets nothing before it has joined. */
  readonly isServed: boolean
  readonly pausedBy: string | null
  readonly pausedAt: Date | null
  readonly hasLiveWorker: boolean
  /** Whether it takes events of this stream and type. */
  readonly matches: boolean
  /** Whether the event was written after it began, or is among what it began with. */
  readonly started: boolean
  /** Of one that reads the log: whether it is past the event, or has still to come to it. Null for all others. */
  readonly log: 'past' | 'ahead' | null
  readonly delivery: TracedDelivery | null
  /** The first delivery of the same key that stands before it, as far as was looked. */
  readonly behind: Blocker | null
  /** The event that was put in its place for this subscription. */
  readonly replacedBy: string | null
  /** The newest dead letter. */
  readonly letter: TracedLetter | null
}

/** What is left of an event that retention moved to an archive. */
export interface ArchivedEvent {
  readonly position: string
  readonly createdAt: Date
  /** The archive that has it, `schema.table`; null once it was purged from there. */
  readonly archive: string | null
  /** Those that it had been delivered to. */
  readonly subscriptions: readonly string[]
}

/** All that is known of an event's way. */
export interface EventTrace {
  /** Null where there is no such event, or none that is committed. */
  readonly event: TracedEvent | null
  /** What it carries, to tell which values errors must not quote; null where there is no event. */
  readonly payload: unknown
  readonly subscriptions: readonly SubscriptionTrace[]
  /** Where it is gone because it was archived. */
  readonly archived: ArchivedEvent | null
  /** Dead letters that outlived their event, by subscription. */
  readonly letters: readonly (TracedLetter & { readonly subscription: string })[]
  /** While a subscription is joining: the oldest transaction that it waits for. */
  readonly waitsFor: OpenTransaction | null
}
