import type { OutboxEvent } from '../event/event.ts'

/** The four states a delivery can be in. See docs/state-machine.md. */
export type DeliveryStatus = 'PENDING' | 'PROCESSING' | 'DONE' | 'DEAD'

/** A worker's claim on one delivery. `token` only grows, so it also fences systems outside the database. */
export interface Lease {
  readonly token: string
  readonly workerId: string
}

/** Where a delivery's row is: the primary key of `outbox_delivery`. */
export interface DeliveryKey {
  readonly subscriptionId: number
  readonly lane: number
  /** The event's position, as text. */
  readonly position: string
}

/** A delivery that this worker holds a lease on, with its event as stored. */
export interface ClaimedDelivery extends DeliveryKey {
  readonly lease: Lease
  /** Counted at the claim: 1 on the first run. */
  readonly attempt: number
  readonly maxAttempts: number
  /** True when an earlier holder vanished with it in hand: it must run with nothing beside it. */
  readonly suspect: boolean
  /** The event with its payload as parsed JSON, not yet upcast or validated. */
  readonly event: OutboxEvent
  /** How much text it takes up while it is in hand. Left out, it counts as nothing. */
  readonly characters?: number
  /**
   * Called when nobody is likely to ask for the event again, though the result is still to be written: what can be read
   * again need not be kept. Asked for after all, it is an equal one.
   */
  letGoOfEvent?(): void
}

/** Why an attempt failed, in a form that can be stored: text without NUL or lone surrogates, bounded. */
export interface DeliveryFailure {
  readonly code: string
  readonly message: string
}

/** Whether the handler called `ctx.complete`, and so its own transaction decides. */
export interface MaybeCompleted {
  /**
   * True when the handler marked the delivery done in its own transaction, however the attempt ended afterwards. If
   * that transaction commits, the delivery is DONE; only if it is rolled back does the attempt's own end count.
   */
  readonly completed?: boolean
}

/** How one attempt ended, as the dispatcher reports it. */
export type DeliveryOutcome =
  | ({ readonly kind: 'handled' } & MaybeCompleted)
  | ({
      readonly kind: 'failed'
      readonly failure: DeliveryFailure
      readonly retry: RetryAdvice
    } & MaybeCompleted)
  /** The worker is stopping or lost its lease: not the event's fault, no attempt is spent. */
  | ({ readonly kind: 'interrupted' } & MaybeCompleted)
  /** Not for this process (an older version of the code): somebody else's, a little later. No attempt is spent. */
  | { readonly kind: 'postponed'; readonly failure: DeliveryFailure; readonly afterMs: number }

/** What a failure says about trying again. */
export type RetryAdvice =
  | { readonly kind: 'by-policy' }
  /** Try again, but not before this long (Retry-After, RetryLaterError). */
  | { readonly kind: 'after'; readonly delayMs: number }
  /** Trying again cannot help: dead letter at once. */
  | { readonly kind: 'never' }

/** What is to be written down for a claimed delivery. Times are delays: the database's clock turns them into instants. */
export type Settlement =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly delayMs: number; readonly failure: DeliveryFailure }
  | { readonly kind: 'dead'; readonly failure: DeliveryFailure }
  /** Given back as if never claimed: the attempt is returned. `delayMs` 0 means at once. */
  | { readonly kind: 'release'; readonly delayMs: number }
  /** Given back to wait behind an earlier event of its ordering key: the attempt is returned. */
  | { readonly kind: 'park' }

/**
 * One attempt's result with its timing, for the history kept of failures. Of an attempt that completed its delivery in
 * its own transaction the settlement is what to write if that was rolled back.
 */
export interface Settled extends MaybeCompleted {
  readonly delivery: ClaimedDelivery
  readonly settlement: Settlement
  readonly durationMs: number
}
