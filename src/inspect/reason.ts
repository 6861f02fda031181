import type { OpenTransaction } from '../delivery/open-transaction.ts'
import type { DeadLetter } from '../store/dead-letter-store.ts'
import type { Blocker } from '../store/event-trace.ts'

/** What there is to say of each way an event can stand with a subscription. */
export interface ReasonFacts {
  /** It was delivered. */
  readonly delivered: { readonly at: Date; readonly attempts: number }
  /**
   * It failed for good. Its dead letter is null once it is purged, which happens to none that is not decided on. `resolvedBy`
   * names who settled it by hand; while it is null a policy delivers it again at `redriveAt`, or it waits for a person.
   */
  readonly dead: {
    readonly deadLetter: string | null
    readonly errorCode: string | null
    readonly errorMessage: string | null
    readonly resolvedBy: string | null
    readonly redriveAt: DeadLetter['redriveAt']
  }
  /** It was handled from the log, where no time is kept of each. */
  readonly streamed: object
  /** The subscription reads the log and is not recorded as past it: it comes, or came a moment ago. */
  readonly 'in-log': { readonly hasLiveWorker: boolean }
  /** A worker has it in hand. */
  readonly leased: {
    readonly worker: string
    readonly until: Date
    readonly attempt: number
    readonly maxAttempts: number
  }
  /** A worker had it in hand and is gone: another takes it back, if there is one. */
  readonly lapsed: { readonly worker: string; readonly until: Date; readonly hasLiveWorker: boolean }
  readonly paused: { readonly by: string; readonly at: Date }
  /** The subscription gets nothing, or not this, before it has joined. */
  readonly joining: { readonly waitsFor: OpenTransaction | null }
  readonly 'no-worker': object
  /** An earlier event of the same key has to end first. */
  readonly behind: Blocker
  /** It failed and is tried again at `at`. */
  readonly retrying: {
    readonly at: Date
    readonly attempts: number
    readonly maxAttempts: number
    readonly errorCode: string | null
    readonly errorMessage: string | null
  }
  /** Its worker vanished while others ran beside it: it runs apart from all else. */
  readonly suspect: { readonly at: Date | null }
  /** Nothing is in the way: the next claim that has room takes it. */
  readonly ready: { readonly attempts: number }
  /** For this subscription another event was put in its place: ask for that one. */
  readonly replaced: { readonly by: string }
  /** It ought to have a delivery and has none: see `verify`. */
  readonly missing: object
  /** It was published before the subscription began. */
  readonly 'before-start': object
  /** The subscription does not take such events. */
  readonly 'not-taken': object
}

/** The ways an event can stand with a subscription. */
export type ReasonKind = keyof ReasonFacts

/** Why an event has not been delivered to a subscription, or that it has. */
export type Reason = { [Kind in ReasonKind]: { readonly kind: Kind } & ReasonFacts[Kind] }[ReasonKind]
