import type { ClaimedDelivery, DeliveryOutcome } from '../delivery/delivery.ts'
import { deliveryFailure } from '../delivery/failure.ts'
import { shown } from '../runtime/option-checks.ts'
import { describeError } from '../runtime/text.ts'
import { nextTurn } from '../runtime/turn.ts'
import { Attempt, type DispatchedDelivery } from './attempt.ts'
import type { EventDispatcher, InterruptOptions } from './dispatcher.ts'
import type { TransportSession } from './transport.ts'

/** What a batch dispatcher is made of. */
export interface BatchDispatcherParts {
  readonly session: TransportSession
  readonly clock: { sleep(ms: number): Promise<void> }
  /** How many events go in one batch at most. */
  readonly batchSize: number
  /**
   * Interrupts what is not to be sent any more: a process that was asleep may meet the answer to its last batch before it
   * meets the end of its leases.
   */
  beforeSend?(): void
}

const INTERRUPTED: DeliveryOutcome = { kind: 'interrupted' }
const HANDLED: DeliveryOutcome = { kind: 'handled' }

/**
 * Hands events to a transport, as many at once as are there. To whoever runs it, it looks like any dispatcher: each
 * delivery has an outcome of its own. What arrives in one turn of the event loop, or while a batch is under way, goes
 * together in the next; one batch at a time, so that nothing overtakes what stands before it.
 */
export class BatchDispatcher<Delivery extends DispatchedDelivery = ClaimedDelivery>
  implements EventDispatcher<Delivery>
{
  readonly #parts: BatchDispatcherParts
  #collected: Attempt<Delivery>[] = []
  #underWay: readonly Attempt<Delivery>[] = []
  #giveUp: AbortController | null = null
  #isSending = false
  /** Keys of which something was not sent, until whoever hands over deliveries knows of it. */
  readonly #stopped = new Set<string>()

  constructor(parts: BatchDispatcherParts) {
    this.#parts = parts
  }

  get running(): number {
    return this.#collected.length + this.#underWay.length - this.abandoned
  }

  get abandoned(): number {
    return this.#underWay.filter(({ over }) => over).length
  }

  handles(): boolean {
    return true
  }

  dispatch(delivery: Delivery): Promise<DeliveryOutcome> {
    const attempt = new Attempt(delivery)
    if (this.#stopped.has(keyOf(attempt))) return Promise.resolve(INTERRUPTED)
    const outcome = attempt.outcome()
    this.#collected.push(attempt)
    if (!this.#isSending) void this.#sendAll()
    return outcome
  }

  interrupt(reason: Error, { graceMs = 0, which }: InterruptOptions<Delivery> = {}): number {
    const all = [...this.#underWay, ...this.#collected].filter(({ over }) => !over)
    const struck = which === undefined ? all : withLater(all, ({ delivery }) => which(delivery))
    for (const attempt of struck) attempt.end({ why: 'interruption', reason })
    const sending = new Set(this.#underWay)
    const unsure = struck.filter((attempt) => sending.has(attempt))
    this.#abandon(struck.filter((attempt) => !sending.has(attempt)))
    // What waits for a destination that is down need not wait any more; the others of the batch are sent again.
    if (unsure.length > 0) this.#giveUp?.abort()
    if (graceMs <= 0) this.#abandon(unsure)
    else void this.#parts.clock.sleep(graceMs).then(() => this.#abandon(unsure))
    return struck.length
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    // Whoever hands over one event hands over more in the same turn.
    await nextTurn()
    let untold: readonly Attempt<Delivery>[] = []
    while (this.#collected.length > 0) {
      untold = await this.#sendNext(untold)
      if (this.#collected.length > 0) continue
      await this.#tell(untold)
      untold = []
    }
    this.#isSending = false
  }

  /** It goes out before those of the last batch are told: whoever is told hands over more, which takes its time. */
  async #sendNext(untold: readonly Attempt<Delivery>[]): Promise<readonly Attempt<Delivery>[]> {
    this.#parts.beforeSend?.()
    const batch = this.#collected.splice(0, this.#parts.batchSize)
    if (batch.length === 0) return untold
    this.#giveUp = new AbortController()
    this.#underWay = batch
    const sending = this.#outcomesOf(batch, this.#giveUp.signal)
    if (untold.length > 0 || this.#collected.length > 0) await this.#useTheTime(untold)
    const outcomes = await sending
    this.#underWay = []
    return this.#afterSend(batch, outcomes)
  }

  /** While the destination is busy with a batch. */
  async #useTheTime(untold: readonly Attempt<Delivery>[]): Promise<void> {
    // So that it is on its way.
    await nextTurn()
    await this.#tell(untold)
    for (const { event } of this.#collected.slice(0, this.#parts.batchSize)) {
      try {
        this.#parts.session.prepare?.(event)
      } catch {
        // It was a hint. What is wrong with the event is told when it is sent.
      }
    }
  }

  /** Resolves when whoever was told had a turn to hand over more. */
  async #tell(handled: readonly Attempt<Delivery>[]): Promise<void> {
    for (const attempt of handled) attempt.settle(HANDLED)
    await nextTurn()
  }

  /** Settles what a batch came to. Returns those that were handled, where all were: they are still to be told. */
  #afterSend(
    batch: readonly Attempt<Delivery>[],
    outcomes: readonly DeliveryOutcome[],
  ): readonly Attempt<Delivery>[] {
    if (batch.every((_, index) => outcomes[index]?.kind === 'handled')) return batch
    const again: Attempt<Delivery>[] = []
    const stopped = new Set<string>()
    for (const [index, attempt] of batch.entries()) {
      const outcome = outcomes[index] ?? INTERRUPTED
      if (
        this.#giveUp?.signal.aborted === true &&
        isUnsent(attempt, outcome) &&
        !stopped.has(keyOf(attempt))
      ) {
        again.push(attempt)
        continue
      }
      if (outcome.kind !== 'handled') stopped.add(keyOf(attempt))
      attempt.settle(outcome)
    }
    this.#stop(stopped)
    this.#collected.unshift(...again)
    return []
  }

  /** Gives back what stands behind something of its key that was not sent, and what is handed over behind it yet. */
  #stop(keys: ReadonlySet<string>): void {
    if (keys.size === 0) return
    const behind = this.#collected.filter((attempt) => keys.has(keyOf(attempt)))
    this.#collected = this.#collected.filter((attempt) => !keys.has(keyOf(attempt)))
    for (const attempt of behind) attempt.settle(INTERRUPTED)
    for (const key of keys) this.#stopped.add(key)
    // By then everybody who waited for an outcome has been told.
    void nextTurn().then(() => {
      for (const key of keys) this.#stopped.delete(key)
    })
  }

  /** Never rejects: whoever sends must go on with the next batch, whatever a transport does. */
  async #outcomesOf(
    batch: readonly Attempt<Delivery>[],
    signal: AbortSignal,
  ): Promise<readonly DeliveryOutcome[]> {
    try {
      const outcomes = await this.#parts.session.send(
        batch.map(({ event }) => event),
        signal,
      )
      if (Array.isArray(outcomes)) return outcomes
      throw new TypeError(`send must resolve with a list of outcomes, but did so with ${shown(outcomes)}`)
    } catch (error) {
      // It is meant not to: a transport of somebody else's, with a bug. Nobody knows what it has sent.
      const failure = deliveryFailure('TRANSPORT_ERROR', describeError(error))
      return batch.map(() => ({ kind: 'failed', failure, retry: { kind: 'by-policy' } }))
    }
  }

  #abandon(attempts: readonly Attempt<Delivery>[]): void {
    const left = attempts.filter(({ over }) => !over)
    for (const attempt of left) attempt.settle(INTERRUPTED)
    const gone = new Set(left)
    this.#collected = this.#collected.filter((attempt) => !gone.has(attempt))
    this.#stop(new Set(left.map(keyOf)))
  }
}

function keyOf({ event }: Attempt): string {
  return event.orderingKey
}

/** Those that are meant, and what stands behind them on their keys. */
function withLater<Each extends Attempt>(
  attempts: readonly Each[],
  isMeant: (attempt: Each) => boolean,
): readonly Each[] {
  const keys = new Set<string>()
  return attempts.filter((attempt) => {
    const isStruck = keys.has(keyOf(attempt)) || isMeant(attempt)
    if (isStruck) keys.add(keyOf(attempt))
    return isStruck
  })
}

/** Not sent because others of its batch were interrupted, and so still to be sent. */
function isUnsent(attempt: Attempt, outcome: DeliveryOutcome): boolean {
  return outcome.kind === 'interrupted' && attempt.ending === null
}
