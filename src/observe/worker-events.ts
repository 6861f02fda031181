import type { ClaimedDelivery, DeliveryFailure } from '../delivery/delivery.ts'
import type { OpenTransaction } from '../delivery/open-transaction.ts'
import type { EventIdentity, OutboxEvent } from '../event/event.ts'

/** Which attempt at which delivery a worker event is about. */
export interface AttemptInfo {
  readonly subscription: string
  readonly event: OutboxEvent
  /** 1 for the first. */
  readonly attempt: number
  readonly maxAttempts: number
}

/** A delivery as it was claimed. */
export type TakenDelivery = Pick<ClaimedDelivery, 'event' | 'attempt' | 'maxAttempts' | 'suspect'>

/** Everything a worker tells about itself. Names are past tense: it has happened and, where it is stored, is. */
export type WorkerEvent =
  | { readonly kind: 'started'; readonly workerId: string; readonly subscriptions: readonly string[] }
  /** No more is claimed; what is in hand is finished. */
  | { readonly kind: 'stopping'; readonly workerId: string; readonly inHand: number }
  | { readonly kind: 'stopped'; readonly workerId: string; readonly released: number }
  | {
      readonly kind: 'claimed'
      readonly subscription: string
      readonly count: number
      readonly suspects: number
      readonly durationMs: number
      /** Those that were claimed. The event of each is read when it is asked for. */
      readonly deliveries: readonly TakenDelivery[]
    }
  | ({
      readonly kind: 'handled'
      readonly durationMs: number
      /** What the handler failed with after it had completed the event in its own transaction: the event is DONE. */
      readonly failure?: DeliveryFailure
    } & AttemptInfo)
  | ({
      readonly kind: 'retried'
      readonly failure: DeliveryFailure
      readonly delayMs: number
      readonly durationMs: number
    } & AttemptInfo)
  | ({ readonly kind: 'dead'; readonly failure: DeliveryFailure; readonly durationMs: number } & AttemptInfo)
  /** Given back with its attempt. */
  | ({
      readonly kind: 'released'
      readonly why: 'interrupted' | 'postponed'
      readonly delayMs: number
    } & AttemptInfo)
  /** The attempt's result was not written: another worker holds or has settled the delivery. */
  | ({ readonly kind: 'leaseLost' } & AttemptInfo)
  /** A handler came back after its timeout or interruption; the result was ignored. */
  | ({
      readonly kind: 'finishedLate'
      readonly after: 'timeout' | 'interruption'
      readonly succeeded: boolean
      readonly durationMs: number
    } & AttemptInfo)
  /** Lapsed leases were taken back: `suspects` of them must run apart, `dead` crashed their worker once too often. */
  | {
      readonly kind: 'recovered'
      readonly subscription: string
      readonly count: number
      readonly suspects: number
      readonly dead: number
    }
  /** A subscription has been joining for a while, because somebody has an older transaction open. */
  | {
      readonly kind: 'joiningWaits'
      readonly subscriptions: readonly string[]
      readonly waitsFor: OpenTransaction
    }
  /** Somebody retired a subscription that this worker serves: it claims no more of it. */
  | { readonly kind: 'retired'; readonly subscription: string; readonly retiredBy: string | null }
  /** This worker reads the log for a subscription now. */
  | { readonly kind: 'streaming'; readonly subscription: string }
  /**
   * The log has lost something of a subscription (`reason`: its slot is gone, was moved, fell behind the budget): nothing
   * is lost, since whatever was not handled is delivered from the table, but somebody may want to know why.
   */
  | { readonly kind: 'streamGap'; readonly subscription: string; readonly reason: string }
  /** What the log had lost was delivered from the table. */
  | { readonly kind: 'streamRecovered'; readonly subscription: string; readonly count: number }
  /** A policy sent dead letters on their way again; `leftToPerson` it will not touch any more. */
  | {
      readonly kind: 'redriven'
      readonly subscription: string
      readonly policy: string
      readonly count: number
      readonly leftToPerson: number
    }
  /** A policy let events go that everybody was done with. `stream` is what it names: a stream or a pattern. */
  | {
      readonly kind: 'retained'
      readonly policy: string
      readonly stream: string
      readonly deleted: number
      readonly archived: number
    }
  /** No subscription takes this event. */
  | { readonly kind: 'unmatched'; readonly event: OutboxEvent }
  /**
   * Something around deliveries failed; the worker goes on. `during` names what: "claim", "settle", "heartbeat".
   * `event` is there where it is about one alone.
   */
  | {
      readonly kind: 'error'
      readonly during: string
      readonly error: unknown
      readonly subscription: string | null
      readonly event?: EventIdentity
    }

/** Told of every worker event, synchronously: it must be quick, and whatever it throws is ignored. */
export type Observer = (event: WorkerEvent) => void

/** Observes nothing. `combineObservers` of no observers is this very function, so that callers can skip the work. */
export const ignoreWorkerEvents: Observer = () => {}

/** One observer for many, none of which can harm the others or the caller. */
export function combineObservers(observers: readonly Observer[]): Observer {
  const real = observers.filter((observer) => observer !== ignoreWorkerEvents)
  if (real.length === 0) return ignoreWorkerEvents
  return (event) => {
    for (const observer of real) tell(observer, event)
  }
}

function tell(observer: Observer, event: WorkerEvent): void {
  try {
    const result: unknown = observer(event)
    // An async function fits the type; its rejection would otherwise end the process.
    if (result instanceof Promise) result.catch(() => {})
  } catch {
    // An observer that fails must not fail the delivery it watches, and there is nobody left to tell.
  }
}
