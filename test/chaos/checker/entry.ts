/** What makes an event the event it is: a handler must see it exactly as its publisher gave it. */
export interface Identity {
  readonly eventId: string
  readonly type: string
  /** The ordering key, or whatever else order is kept by. */
  readonly key: string
  /** Stands for payload and headers: equal texts for equal contents. */
  readonly digest: string
}

/** How a transaction ended, as far as its publisher was told. */
export type Outcome = 'committed' | 'rolledBack' | 'unknown'

/**
 * One line of a journal. `at` is in milliseconds of one clock that all who write share and that never runs backwards.
 * Lines may come in any order; `at` decides.
 */
export type Entry =
  /** From now on this subscription takes these types (null: all). A later line adds to what an earlier one said. */
  | {
      readonly kind: 'subscribed'
      readonly at: number
      readonly subscription: string
      readonly order: 'none' | 'key'
      readonly oneAtATime: boolean
      readonly types: readonly string[] | null
    }
  /** A publisher is about to begin. The same `transaction` again is a retry of the same events. */
  | {
      readonly kind: 'begun'
      readonly at: number
      readonly transaction: string
      readonly publisher: string
      readonly events: readonly Identity[]
    }
  /** It is about to ask for the COMMIT. */
  | { readonly kind: 'committing'; readonly at: number; readonly transaction: string }
  /** It was told how that ended. Without such a line, the outcome is unknown. */
  | {
      readonly kind: 'concluded'
      readonly at: number
      readonly transaction: string
      readonly outcome: Outcome
    }
  /** A handler began. `run` is unique; `sequence` is the event's number in its key, if it has one. */
  | ({
      readonly kind: 'seen'
      readonly at: number
      readonly run: string
      readonly worker: string
      readonly subscription: string
      readonly attempt: number
      readonly sequence: number | null
    } & Identity)
  /** It came to its end: its effect has happened, or it threw. */
  | {
      readonly kind: 'finished'
      readonly at: number
      readonly run: string
      readonly outcome: 'done' | 'failed'
    }
  /** The worker's process is gone, and so is whatever it was running. */
  | { readonly kind: 'died'; readonly at: number; readonly worker: string }
  /** Visibly waiting for a person: a dead letter. */
  | {
      readonly kind: 'setAside'
      readonly at: number
      readonly subscription: string
      readonly eventId: string
    }
  /** What the outbox still held when everybody had had time enough: told apart from what it does not know any more. */
  | {
      readonly kind: 'left'
      readonly at: number
      readonly subscription: string
      readonly eventId: string
      readonly status: string
    }
  | FaultEntry

/** Something was broken on purpose, from `at` to `until`. */
export interface FaultEntry {
  readonly kind: 'fault'
  readonly at: number
  readonly until: number
  readonly id: string
  /** What was done: "kill", "restart". */
  readonly name: string
  /** Which workers it may have cost their leases; null for all of them, none for what must harm nobody. */
  readonly workers: readonly string[] | null
}

/** Something that the history shows and that must not be. */
export interface Finding {
  readonly eventId: string
  readonly subscription: string | null
  readonly text: string
}
