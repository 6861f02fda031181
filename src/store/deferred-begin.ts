import type { Given } from './client-gate.ts'

/** BEGIN and the first statement of a transaction, as one object for the client to send. */
export interface BeginAndStatement {
  readonly query: object
  /** What came of the statement. */
  readonly answer: Promise<unknown>
  /** Resolves when the transaction has begun; rejects where it did not: then the statement was not run either. */
  readonly begun: Promise<void>
}

/** Puts BEGIN before a statement, given as to the client; null for one that it cannot be put before. */
export type BeginWith = (begin: string, given: Given) => BeginAndStatement | null

/** A BEGIN that is sent when something is to be sent after it. */
export interface PendingBegin {
  readonly text: string
  readonly beginWith: BeginWith | null
}

type State = 'pending' | 'underWay' | 'begun' | 'failed'

/** Sends a BEGIN with the first statement of its transaction, and tells when the server has answered it. */
export class DeferredBegin {
  readonly #begin: PendingBegin
  readonly #transmit: (given: Given) => unknown
  readonly #onAnswered: () => void
  #state: State = 'pending'
  #error: unknown

  constructor(begin: PendingBegin, transmit: (given: Given) => unknown, onAnswered: () => void) {
    this.#begin = begin
    this.#transmit = transmit
    this.#onAnswered = onAnswered
  }

  /** Whether nobody was given it to send. */
  get isPending(): boolean {
    return this.#state === 'pending'
  }

  /** Whether it waits for its answer: whatever was sent before that could run alone. */
  get isUnderWay(): boolean {
    return this.#state === 'underWay'
  }

  /** Why there is no transaction, and never will be. */
  get failure(): { readonly error: unknown } | null {
    return this.#state === 'failed' ? { error: this.#error } : null
  }

  /** Gives it away to somebody who sends it himself; null where it is gone already. */
  take(): string | null {
    if (!this.isPending) return null
    this.#state = 'begun'
    return this.#begin.text
  }

  /** Sends it with a statement, and returns the statement's answer; null where the statement has to wait for it. */
  sendWith(given: Given): Promise<unknown> | null {
    this.#state = 'underWay'
    const { text, beginWith } = this.#begin
    const both = beginWith?.(text, given) ?? null
    const begun = both?.begun ?? this.#sendAlone()
    begun.then(
      () => this.#answered('begun'),
      (error: unknown) => this.#answered('failed', error),
    )
    if (both === null) return null
    try {
      this.#transmit([both.query])
    } catch (error) {
      this.#answered('failed', error)
      throw error
    }
    return both.answer
  }

  async #sendAlone(): Promise<void> {
    await this.#transmit([this.#begin.text])
  }

  #answered(state: State, error?: unknown): void {
    // Only the first answer counts.
    if (!this.isUnderWay) return
    this.#state = state
    this.#error = error
    this.#onAnswered()
  }
}
