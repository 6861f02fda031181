import type { Settled } from '../delivery/delivery.ts'
import type { Clock } from '../runtime/clock.ts'
import { CommitpostError } from '../runtime/errors.ts'
import { Outage } from '../runtime/outage.ts'
import { textProperty } from '../runtime/property.ts'
import type { Random } from '../runtime/random.ts'
import { isAboutARow } from '../runtime/sql-state.ts'
import type { SettleReport } from '../store/queue-store.ts'

/** What a settler is made of. */
export interface SettlerParts<Item extends Settled> {
  settle(batch: readonly Settled[]): Promise<SettleReport>
  readonly clock: Clock
  readonly random: Random
  /** As many are written without waiting for more. */
  readonly batchSize: number
  /** How many of the first of these, one at least, may be written in one batch. */
  together(items: readonly Item[]): number
  /** Aborts when it is no longer worth trying: the worker has to end. */
  readonly giveUp: AbortSignal
  /**
   * Told of each batch that is written. `again` is true when an earlier try failed: it may have been written after
   * all, and then what the report calls lost is not lost but done.
   */
  onSettled(batch: readonly Item[], report: SettleReport, again: boolean): void
  /** Told, once, of a result that the database refuses. It is offered again until it is taken or not ours any more. */
  onRefused(item: Item, error: CommitpostError): void
  /** Told of what could not be written: its leases lapse, and it will be run again. */
  onGivenUp(batch: readonly Item[], error: unknown): void
  /** Told once per outage, while the tries go on. */
  onOutage(error: unknown): void
}

/** How long a result waits for company while more are about to come. */
const LINGER_MS = 5
// Without one, every abort makes an exception with a stack, which costs more than the wait it ends.
const NO_REASON = null
/** How soon a row that was locked or refused is tried again, at first and at last. */
const FIRST_PAUSE_MS = 10
const LAST_PAUSE_MS = 1_000
/** A flush takes what has come together meanwhile, up to so many batches at once. */
const MOST_BATCHES_AT_ONCE = 2

/**
 * Writes results down in batches, one after the other and in the order they came. A batch that fails for want of a
 * connection is offered again until it is written: the handlers have done their work and must not run again for it.
 * What is locked by a transaction that has not ended, or refused, is offered again too, later and apart from the others.
 */
export class Settler<Item extends Settled> {
  readonly #parts: SettlerParts<Item>
  readonly #outage: Outage
  #collected: Item[] = []
  #running: Promise<void> | null = null
  #urgent = false
  #flushing = 0
  #lingering: AbortController | null = null
  #postponed: Item[] = []
  #pauseMs = FIRST_PAUSE_MS
  #waiting: Promise<void> | null = null
  #again: Item[] = []
  readonly #refused = new WeakSet<Item>()
  #finishing = false

  constructor(parts: SettlerParts<Item>) {
    this.#parts = parts
    this.#outage = new Outage({ random: parts.random, onBegin: (error) => parts.onOutage(error) })
  }

  /** Takes a result. It is written soon: with a full batch, when hurried, or after a few milliseconds. */
  add(item: Item): void {
    this.#collected.push(item)
    if (this.#collected.length >= this.#parts.batchSize) this.hurry()
    this.#start()
  }

  /** Nothing more is coming for now: what has been collected is written without waiting for company. */
  hurry(): void {
    if (this.#collected.length === 0) return
    this.#urgent = true
    this.#lingering?.abort(NO_REASON)
  }

  /** Resolves when everything added so far is written, given up, or waits to be offered again. */
  async flush(): Promise<void> {
    this.#flushing += 1
    while (this.#running !== null) {
      this.hurry()
      await this.#running
    }
    this.#flushing -= 1
  }

  /** Resolves when everything is written or given up; what is refused is not offered again any more. */
  async finish(): Promise<void> {
    this.#finishing = true
    await this.flush()
    while (this.#waiting !== null) {
      await this.#waiting
      await this.flush()
    }
  }

  #start(): void {
    if (this.#running !== null) return
    this.#running = this.#run().finally(() => {
      this.#running = null
      // Something may have come between the end of the loop and here.
      if (this.#collected.length + this.#again.length > 0) this.#start()
    })
  }

  async #run(): Promise<void> {
    while (this.#collected.length + this.#again.length > 0) {
      if (this.#again.length > 0) await this.#writeAgain()
      else await this.#writeCollected()
    }
  }

  async #writeCollected(): Promise<void> {
    await this.#linger()
    const first = this.#collected.slice(0, this.#parts.batchSize * MOST_BATCHES_AT_ONCE)
    const count = this.#parts.together(first)
    // What has to be written after it has waited long enough by then.
    this.#urgent = count < first.length
    await this.#write(this.#collected.splice(0, count), false)
  }

  async #writeAgain(): Promise<void> {
    await this.#write(this.#again.splice(0), false)
    if (this.#waiting === null) this.#pauseMs = FIRST_PAUSE_MS
  }

  async #linger(): Promise<void> {
    const isFull = this.#collected.length >= this.#parts.batchSize
    if (this.#urgent || this.#flushing > 0 || isFull) return
    this.#lingering = new AbortController()
    await this.#parts.clock.sleep(LINGER_MS, this.#lingering.signal)
    this.#lingering = null
  }

  async #write(batch: readonly Item[], again: boolean): Promise<void> {
    let isRetry = again
    for (;;) {
      try {
        const report = await this.#parts.settle(batch)
        this.#outage.succeeded()
        return this.#written(batch, report, isRetry)
      } catch (error) {
        if (isAboutARow(error)) return this.#writeApart(batch, error)
        if (this.#parts.giveUp.aborted) return this.#parts.onGivenUp(batch, error)
        isRetry = true
        await this.#parts.clock.sleep(this.#outage.failed(error), this.#parts.giveUp)
      }
    }
  }

  #written(batch: readonly Item[], report: SettleReport, again: boolean): void {
    if (report.busy.length === 0) return this.#parts.onSettled(batch, report, again)
    const busy = new Set<Settled>(report.busy)
    const locked = batch.filter((item) => busy.has(item))
    if (this.#parts.giveUp.aborted) this.#parts.onGivenUp(locked, lockedError(locked))
    else this.#postpone(locked)
    this.#parts.onSettled(
      batch.filter((item) => !busy.has(item)),
      report,
      again,
    )
  }

  #postpone(items: readonly Item[]): void {
    this.#postponed.push(...items)
    this.#waiting ??= this.#offerAgain()
  }

  async #offerAgain(): Promise<void> {
    await this.#parts.clock.sleep(this.#pauseMs, this.#parts.giveUp)
    this.#waiting = null
    // Longer each time, until all of them are written.
    this.#pauseMs = Math.min(this.#pauseMs * 2, LAST_PAUSE_MS)
    this.#again.push(...this.#postponed.splice(0))
    this.#start()
  }

  /** One row that the database refuses must not keep the others from being written: halves until it is alone. */
  async #writeApart(batch: readonly Item[], error: unknown): Promise<void> {
    const [item] = batch
    if (item !== undefined && batch.length === 1) return this.#refuse(item, error)
    const middle = batch.length >> 1
    await this.#write(batch.slice(0, middle), true)
    await this.#write(batch.slice(middle), true)
  }

  /** Whoever had it refused, such as a trigger, may be put right; and only the next try tells whose it is by then. */
  #refuse(item: Item, error: unknown): void {
    const refusal = refusedError(item, error)
    if (this.#finishing || this.#parts.giveUp.aborted) return this.#parts.onGivenUp([item], refusal)
    if (!this.#refused.has(item)) this.#parts.onRefused(item, refusal)
    this.#refused.add(item)
    this.#postpone([item])
  }
}

function lockedError(items: readonly Settled[]): CommitpostError {
  const ids = items.map(({ delivery }) => delivery.event.eventId).join(', ')
  return new CommitpostError(
    'DEADLINE_EXCEEDED',
    `The deliveries of these events are locked by transactions that did not end before the worker had to: ${ids}. ` +
      'What such a transaction completes and commits is done; the others are delivered again when their leases lapse.',
  )
}

function refusedError({ delivery }: Settled, error: unknown): CommitpostError {
  const reason = textProperty(error, 'message') ?? 'it gave no reason'
  return new CommitpostError(
    'STORE_REFUSED',
    `The database refuses to write down what became of event ${delivery.event.eventId}: ${reason}. ` +
      'See which trigger or constraint on outbox_delivery does that. Once it lets the result pass, it is written; if the ' +
      'lease lapses before, the event is delivered again. Of an ordered subscription its key waits so long.',
    { cause: error },
  )
}
