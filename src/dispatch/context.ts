import type { Lease } from '../delivery/delivery.ts'
import { eventFields, type Logger, withFields } from '../observe/logger.ts'
import { OutOfTurnError } from '../runtime/errors.ts'
import type { Attempt, DispatchedDelivery } from './attempt.ts'
import type { ContextServices, HandlerContext, Once } from './handler.ts'

/** What all contexts of one subscription share. */
export interface ContextParts<Delivery> {
  readonly subscription: string
  readonly logger: Logger
  readonly services: ContextServices<Delivery>
}

/**
 * The `ctx` of one attempt. A class with getters, so that making one costs an allocation and nothing else: signal and
 * logger exist only for handlers that read them.
 */
export class AttemptContext<Delivery extends DispatchedDelivery> implements HandlerContext {
  readonly #attempt: Attempt<Delivery>
  readonly #parts: ContextParts<Delivery>
  #log: Logger | null = null

  constructor(attempt: Attempt<Delivery>, parts: ContextParts<Delivery>) {
    this.#attempt = attempt
    this.#parts = parts
  }

  get subscription(): string {
    return this.#parts.subscription
  }

  get attempt(): number {
    return this.#attempt.delivery.attempt
  }

  get maxAttempts(): number {
    return this.#attempt.delivery.maxAttempts
  }

  get lease(): Lease | null {
    return this.#attempt.delivery.lease
  }

  get signal(): AbortSignal {
    return this.#attempt.signal
  }

  get log(): Logger {
    this.#log ??= withFields(this.#parts.logger, {
      // As stored, like the worker's own lines: the name in the code may be another.
      ...eventFields(this.#attempt.delivery.event),
      subscription: this.subscription,
      attempt: this.attempt,
    })
    return this.#log
  }

  // An async method, so that a refusal is a rejection like any other.
  async once<Tx, Result>(tx: Tx, work: (tx: Tx) => Promise<Result>): Promise<Once<Result>> {
    this.#refuseWhenEnded()
    return this.#parts.services.once(this.#attempt.event, this.subscription, tx, work)
  }

  async complete(tx: unknown): Promise<void> {
    this.#refuseWhenEnded()
    // Before it is known: should the attempt end in this very moment, it may have been done.
    const before = this.#attempt.completed
    this.#attempt.completed = true
    try {
      await this.#parts.services.complete(this.#attempt.delivery, tx)
    } catch (error) {
      this.#attempt.completed = before
      // None of the event's doing: whatever its handler makes of it, the attempt is not spent.
      if (error instanceof OutOfTurnError) this.#attempt.end({ why: 'interruption', reason: error })
      throw error
    }
  }

  async publish(tx: unknown, name: string, input: unknown): Promise<unknown> {
    this.#refuseWhenEnded()
    return this.#parts.services.publish(this.#attempt.event, tx, name, input)
  }

  /** A handler that outlived its attempt must not write any more: another worker may be running the same event. */
  #refuseWhenEnded(): void {
    if (this.#attempt.ending !== null) throw this.#attempt.ending.reason
  }
}
