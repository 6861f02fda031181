import type { UntoldLetter } from '../store/alert-store.ts'
import type { ConditionRule } from './alert.ts'

/** The lines an alert can have. */
export type FactName =
  | 'deadLetter'
  | 'eventId'
  | 'eventType'
  | 'aggregate'
  | 'subscription'
  | 'stream'
  | 'traceId'
  | 'retryCount'
  | 'error'
  | 'failedAt'
  | 'value'
  | 'threshold'
  | 'since'
  | 'pausedBy'
  | 'pending'
  | 'processing'
  | 'oldestPending'
  | 'dead'
  | 'workers'
  | 'worker'
  | 'lastSeen'
  | 'unresolved'
  | 'oldest'

/** What the sentence about a condition is made of, ready to be shown. */
export interface ConditionWords {
  /** Empty where it is about all subscriptions. */
  readonly subscription: string
  readonly value: string
  readonly threshold: string
  /** Why a log has lost something. */
  readonly reason: string
  /** How long a delivery may be PENDING before it counts as stuck. */
  readonly stuckAfter: string
}

/** How a subscription stands, in the report. */
export interface SubscriptionWords {
  readonly pending: string
  readonly processing: string
  readonly dead: string
  readonly oldest: string | null
  readonly pausedBy: string | null
}

/** Everything alerts say. Each language has all of it: a sentence left out does not compile. */
export interface AlertTexts {
  readonly headings: Readonly<
    Record<'alarm' | 'deadLetter' | 'recovered' | 'notice' | 'report' | 'advice', string>
  >
  readonly facts: Readonly<Record<FactName, string>>
  readonly conditions: Readonly<Record<ConditionRule, (words: ConditionWords) => string>>
  readonly recovered: Readonly<Record<ConditionRule, (subscription: string) => string>>
  readonly advice: Readonly<Record<ConditionRule, (subscription: string) => string>>
  /** In place of the above, where nothing but a pause keeps deliveries waiting. */
  readonly pausedAdvice: (subscription: string) => string
  /** In place of the sentence on workerMissing, where it is the log that waits and no delivery. */
  readonly logUnread: (words: ConditionWords) => string
  /** Of no subscription where none took the event, and nothing was tried. */
  readonly deadLetter: (eventType: string, subscription: string | null) => string
  readonly deadLetters: (count: string) => string
  /** By whether it can be delivered again: a retry of another would be refused. */
  readonly deadLetterAdvice: Readonly<
    Record<'deliverable' | NonNullable<UntoldLetter['undeliverable']>, (id: string) => string>
  >
  readonly deadLettersAdvice: string
  readonly group: (subscription: string, eventType: string, errorCode: string) => string
  readonly vanished: (count: number) => string
  readonly vanishedWorker: (where: string, lastSeen: string, subscriptions: readonly string[]) => string
  readonly vanishedAdvice: string
  readonly report: string
  readonly reportLine: (words: SubscriptionWords) => string
  readonly oldestLetter: (id: string, eventType: string, subscription: string, age: string) => string
  readonly more: (count: string) => string
  /** For a count that ended beyond its limit. */
  readonly moreThan: (count: string) => string
}
