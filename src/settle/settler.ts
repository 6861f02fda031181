import type { Settled } from '../delivery/delivery.ts'
import type { Clock } from '../runtime/clock.ts'
import { Outage } from '../runtime/outage.ts'
import { textProperty } from '../runtime/property.ts'
import type { Random } from '../runtime/random.ts'
import type { SettleReport } from '../store/queue-store.ts'

/** What a settler is made of. */
export interface SettlerParts<Item extends Settled> {
  settle(batch: readonly Settled[]): Promise<SettleReport>
  readonly clock: Clock
  readonly random: Random
  /** As many are written without waiting for more. */
  readonly batchSize: number
  /** Aborts when it is no longer worth trying: the worker has to end. */
  readonly giveUp: AbortSignal
  /**
   * Told of each batch that is written. `again` is true when an earlier try failed: it may have been written after
   * all, and then what the report calls lost is not lost but done.
   */
  onSettled(batch: readonly Item[], report: SettleReport, again: boolean): void
  /** Told of what could not be written: its leases lapse, and it will be run again. */
  onGivenUp(batch: readonly Item[], error: unknown): void
  /** Told once per outage, while the tries go on. */
  onOutage(error: unknown): void
}

/** How long a result waits for company while more are about to come. */
const LINGER_MS = 5
// Without one, every abort makes an exception with a stack, which costs more than the wait it ends.
const NO_REASON = null
/** A flush takes what has come together meanwhile, up to so many batches at once. */
const MOST_BATCHES_AT_ONCE = 2

/**
 * Writes results down in batches, one after the other and in the order they came. A batch that fails for want of a
 * connection is offered again until it is written: the handlers have done their work and must not run again for it.
 */
export class Settler<Item extends Settled> {
  readonly #parts: SettlerParts<Item>
  readonly #outage: Outage
  #collected: Item[] = []
  #running: Promise<void> | null = null
  #urgent = false
  #flushing = 0
  #lingering: AbortController | null = null

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

  /** Resolves when everything added so far is written or given up. */
  async flush(): Promise<void> {
    this.#flushing += 1
    while (this.#running !== null) {
      this.hurry()
      await this.#running
    }
    this.#flushing -= 1
  }

  #start(): void {
    if (this.#running !== null) return
    this.#running = this.#run().finally(() => {
      this.#running = null
      // Something may have come between the end of the loop and here.
      if (this.#collected.length > 0) this.#start()
    })
  }

  async #run(): Promise<void> {
    while (this.#collected.length > 0) {
      await this.#linger()
      this.#urgent = false
      const batch = this.#collected.splice(0, this.#parts.batchSize * MOST_BATCHES_AT_ONCE)
      await this.#write(batch, false)
    }
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
        this.#parts.onSettled(batch, report, isRetry)
        return
      } catch (error) {
        if (isAboutARow(error)) return this.#writeApart(batch, error)
        if (this.#parts.giveUp.aborted) return this.#parts.onGivenUp(batch, error)
        isRetry = true
        await this.#parts.clock.sleep(this.#outage.failed(error), this.#parts.giveUp)
      }
    }
  }

  /** One row that the database refuses must not keep the others from being written: halves until it is alone. */
  async #writeApart(batch: readonly Item[], error: unknown): Promise<void> {
    if (batch.length === 1) return this.#parts.onGivenUp(batch, error)
    const middle = batch.length >> 1
    await this.#write(batch.slice(0, middle), true)
    await this.#write(batch.slice(middle), true)
  }
}

/** SQLSTATE of data, constraints, and what a trigger raises: trying the same again cannot help. */
function isAboutARow(error: unknown): boolean {
  const code = textProperty(error, 'code')
  return code !== undefined && /^(?:22|23|54|P0)[0-9A-Z]{3}$|^55000$/.test(code)
}
