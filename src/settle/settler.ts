import type { Settled } from '../delivery/delivery.ts'
import type { Clock } from '../runtime/clock.ts'
import { CommitpostError } from '../runtime/errors.ts'
import { Outage } from '../runtime/outage.ts'
import { textProperty } from '../runtime/property.ts'
import type { Random } from '../runtime/random.ts'
import { isAboutARow } from '../runtime/sql-state.ts'
import type { SettleReport } from '../store/queue-store.ts'
import { KeyTurns } from './key-turns.ts'

/** What a settler is made of. */
export interface SettlerParts<Item extends Settled> {
  settle(batch: readonly Settled[]): Promise<SettleReport>
  readonly clock: Clock
  readonly random: Random
  /** As many are written without waiting for more. */
  readonly batchSize: number
  /** How many of the first of these, one at least, may be written in one batch. */
  together(items: readonly Item[]): number
  /**
   * The ordering key of which results are written in turn: behind one that is locked or refused nothing of it is written.
   * Null for a result that no later one may follow before it is written, or where there is no order.
   */
  turnOf(item: Item): string | null
  /** Those whose leases may have ended: behind one that turns out to be lost nothing of its key may be written either. */
  inDoubt(items: readonly Item[]): readonly Item[]
  /** Aborts when it is no longer worth trying: the worker has to end. */
  readonly giveUp: AbortSignal
  /**
   * Told of each batch that is written. `again` is true when an earlier try failed: it may have been written after
   * all, and then what the report calls lost is not lost but done. Returns those that are lost.
   */
  onSettled(batch: readonly Item[], report: SettleReport, again: boolean): readonly Item[]
  /** Told, once, of a result that the database refuses. It is offered again until it is taken or not ours any more. */
  onRefused(item: Item, error: CommitpostError): void
  /** Told of a result that has to wait, because somebody has its row locked or an earlier one of its key waits. */
  onWaiting(item: Item): void
  /** Told of results that waited for one of their key which is lost, and so comes again. Returns what to write for them. */
  onOutrun(behind: readonly Item[], lost: Item): readonly Item[]
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
 * What is locked by a transaction that has not ended, or refused, is offered again too, later and apart from the others,
 * and what was done after it on its key is written after it.
 */
export class Settler<Item extends Settled> {
  readonly #parts: SettlerParts<Item>
  readonly #outage: Outage
  readonly #turns: KeyTurns<Item>
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
  /** Why results of which keys were given up: from then on all of them are. */
  readonly #givenUp = new Map<string, unknown>()
  #finishing = false

  constructor(parts: SettlerParts<Item>) {
    this.#parts = parts
    this.#turns = new KeyTurns((item) => parts.turnOf(item))
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
    await this.#write(this.#again.splice(0, this.#parts.together(this.#again)), false)
    if (this.#waiting === null) this.#pauseMs = FIRST_PAUSE_MS
  }

  async #linger(): Promise<void> {
    const isFull = this.#collected.length >= this.#parts.batchSize
    if (this.#urgent || this.#flushing > 0 || isFull) return
    this.#lingering = new AbortController()
    await this.#parts.clock.sleep(LINGER_MS, this.#lingering.signal)
    this.#lingering = null
  }

  async #write(offered: readonly Item[], again: boolean): Promise<void> {
    const batch = this.#inTurn(offered)
    if (batch.length === 0) return
    let isRetry = again
    for (;;) {
      try {
        const report = await this.#parts.settle(batch)
        this.#outage.succeeded()
        return this.#written(batch, report, isRetry)
      } catch (error) {
        if (isAboutARow(error)) return this.#writeApart(batch, error)
        if (this.#parts.giveUp.aborted) return this.#giveUp(batch, error)
        isRetry = true
        await this.#parts.clock.sleep(this.#outage.failed(error), this.#parts.giveUp)
      }
    }
  }

  /** Those that need not wait for an earlier one of their key. */
  #inTurn(offered: readonly Item[]): readonly Item[] {
    const good = this.#givenUp.size === 0 ? offered : offered.filter((item) => !this.#isGivenUp(item))
    const inDoubt = this.#parts.inDoubt(good)
    if (inDoubt.length === 0 && !this.#turns.any) return good
    const [free, waiting] = this.#turns.divide(good, inDoubt)
    for (const item of waiting) this.#parts.onWaiting(item)
    return free
  }

  #written(batch: readonly Item[], report: SettleReport, again: boolean): void {
    if (report.busy.length === 0) return this.#told(batch, report, again)
    const busy = new Set<Settled>(report.busy)
    const locked = batch.filter((item) => busy.has(item))
    const others = batch.filter((item) => !busy.has(item))
    this.#told(others, report, again)
    if (this.#parts.giveUp.aborted) return this.#giveUp(locked, lockedError(locked))
    this.#postpone(locked)
    for (const item of locked) this.#parts.onWaiting(item)
  }

  #told(batch: readonly Item[], report: SettleReport, again: boolean): void {
    const lost = this.#parts.onSettled(batch, report, again)
    if (lost.length === 0 && !this.#turns.any) return
    for (const item of batch) {
      const behind = this.#turns.ended(item)
      this.#again.push(...(lost.includes(item) ? this.#afterLost(item, behind) : behind))
    }
  }

  /** What is to be written of its key now that it comes again. */
  #afterLost(lost: Item, behind: readonly Item[]): readonly Item[] {
    const key = this.#parts.turnOf(lost)
    if (key === null) return behind
    const isOfKey = (item: Item): boolean => this.#parts.turnOf(item) === key
    const collected = this.#collected.filter(isOfKey)
    if (collected.length > 0) this.#collected = this.#collected.filter((item) => !isOfKey(item))
    return this.#parts.onOutrun([...behind, ...collected], lost)
  }

  #postpone(items: readonly Item[]): void {
    this.#postponed.push(...this.#turns.unwritten(items))
    this.#waiting ??= this.#offerAgain()
  }

  /** What comes later of their keys is given up too: it must not be written where they are not. */
  #giveUp(items: readonly Item[], error: unknown): void {
    const all = [...items, ...items.flatMap((item) => this.#turns.ended(item))]
    for (const item of all) {
      const key = this.#parts.turnOf(item)
      if (key !== null) this.#givenUp.set(key, error)
    }
    this.#parts.onGivenUp(all, error)
  }

  #isGivenUp(item: Item): boolean {
    const key = this.#parts.turnOf(item)
    if (key === null || !this.#givenUp.has(key)) return false
    this.#parts.onGivenUp([item], this.#givenUp.get(key))
    return true
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
    if (this.#finishing || this.#parts.giveUp.aborted) return this.#giveUp([item], refusal)
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
