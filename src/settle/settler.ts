import type { Settled } from '../delivery/delivery.ts'
import type { Clock } from '../runtime/clock.ts'
import type { CommitpostError } from '../runtime/errors.ts'
import { Outage } from '../runtime/outage.ts'
import type { Random } from '../runtime/random.ts'
import { isAboutARow } from '../runtime/sql-state.ts'
import type { SettleReport } from '../store/queue-store.ts'
import { Collected } from './collected.ts'
import { KeyTurns } from './key-turns.ts'
import { lockedError, refusedError } from './unwritten-errors.ts'

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
  /** Aborts when it is no longer worth trying: the worker has to end. */
  readonly giveUp: AbortSignal
  /**
   * Told of each batch that is written. `mayBeWritten` is true of those of which an earlier try failed: it may have written
   * them after all, and then what the report calls lost is not lost but done. Returns those that are lost.
   */
  onSettled(
    batch: readonly Item[],
    report: SettleReport,
    mayBeWritten: (item: Item) => boolean,
  ): readonly Item[]
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

const NONE: readonly never[] = []

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
  readonly #collected = new Collected<Item>()
  #running: Promise<void> | null = null
  #urgent = false
  #lingering: AbortController | null = null
  #postponed: Item[] = []
  #pauseMs = FIRST_PAUSE_MS
  #waiting: Promise<void> | null = null
  #again: Item[] = []
  readonly #refused = new WeakSet<Item>()
  /** Those of which a try failed that may have written them. */
  readonly #unanswered = new WeakSet<Item>()
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

  /** Resolves when everything added so far is written, given up, or waits to be offered again, whatever is added meanwhile. */
  async flush(): Promise<void> {
    if (this.#running === null) return
    this.hurry()
    await this.#collected.untilDealtWith()
  }

  /** Resolves when everything is written or given up; what is refused is not offered again any more. */
  async finish(): Promise<void> {
    this.#finishing = true
    this.hurry()
    for (let busy = this.#busy; busy !== null; busy = this.#busy) await busy
  }

  /** What is under way, or will be after a pause. */
  get #busy(): Promise<void> | null {
    return this.#running ?? this.#waiting
  }

  #start(): void {
    if (this.#running !== null) return
    this.#running = this.#run().finally(() => {
      this.#running = null
      // Something may have come between the end of the loop and here.
      if (this.#collected.length + this.#again.length > 0) this.#start()
      else this.#collected.dealtWith()
    })
  }

  async #run(): Promise<void> {
    while (this.#collected.length + this.#again.length > 0) {
      if (this.#again.length > 0) await this.#writeAgain()
      else await this.#writeCollected()
      if (this.#again.length === 0) this.#collected.dealtWith()
    }
  }

  async #writeCollected(): Promise<void> {
    await this.#linger()
    const first = this.#collected.first(this.#parts.batchSize * MOST_BATCHES_AT_ONCE)
    const count = this.#parts.together(first)
    // What has to be written after it has waited long enough by then.
    this.#urgent = count < first.length
    await this.#write(this.#collected.take(count))
  }

  async #writeAgain(): Promise<void> {
    await this.#write(this.#again.splice(0, this.#parts.together(this.#again)))
    if (this.#waiting === null) this.#pauseMs = FIRST_PAUSE_MS
  }

  async #linger(): Promise<void> {
    const isFull = this.#collected.length >= this.#parts.batchSize
    if (this.#urgent || this.#finishing || this.#collected.isAwaited || isFull) return
    this.#lingering = new AbortController()
    await this.#parts.clock.sleep(LINGER_MS, this.#lingering.signal)
    this.#lingering = null
  }

  async #write(offered: readonly Item[]): Promise<void> {
    const batch = this.#inTurn(offered)
    while (batch.length > 0) {
      try {
        const report = await this.#parts.settle(batch)
        this.#outage.succeeded()
        return this.#written(batch, report)
      } catch (error) {
        if (isAboutARow(error)) return this.#writeApart(batch, error)
        if (this.#parts.giveUp.aborted) return this.#giveUp(batch, error)
        this.#noAnswer(batch)
        await this.#parts.clock.sleep(this.#outage.failed(error), this.#parts.giveUp)
      }
    }
  }

  #noAnswer(batch: readonly Item[]): void {
    for (const item of batch) this.#unanswered.add(item)
  }

  /** Those that need not wait for an earlier one of their key. */
  #inTurn(offered: readonly Item[]): readonly Item[] {
    const good = this.#givenUp.size === 0 ? offered : offered.filter((item) => !this.#isGivenUp(item))
    if (!this.#turns.any) return good
    const [free, waiting] = this.#turns.divide(good)
    for (const item of waiting) this.#parts.onWaiting(item)
    return free
  }

  #written(batch: readonly Item[], report: SettleReport): void {
    if (report.busy.length === 0) return void this.#told(batch, report, NONE)
    const busy = new Set<Settled>(report.busy)
    const isBusy = (item: Item): boolean => busy.has(item)
    const others = batch.filter((item) => !isBusy(item))
    const locked = this.#told(others, report, batch.filter(isBusy))
    if (locked.length === 0) return
    if (this.#parts.giveUp.aborted) return this.#giveUp(locked, lockedError(locked))
    this.#postpone(locked)
    for (const item of locked) this.#parts.onWaiting(item)
  }

  /** Tells of what was written. Returns those of the locked ones that are not behind one that is lost. */
  #told(batch: readonly Item[], report: SettleReport, locked: readonly Item[]): readonly Item[] {
    const lost = this.#parts.onSettled(batch, report, (item) => this.#unanswered.has(item))
    if (lost.length === 0 && !this.#turns.any) return locked
    let left = locked
    for (const item of batch) {
      const behind = this.#turns.ended(item)
      const lostKey = lost.includes(item) ? this.#parts.turnOf(item) : null
      if (lostKey === null) this.#again.push(...behind)
      else {
        const isOfKey = (one: Item): boolean => this.#parts.turnOf(one) === lostKey
        this.#comesAgain(item, [...behind, ...left.filter(isOfKey)], isOfKey)
        left = left.filter((one) => !isOfKey(one))
      }
    }
    return left
  }

  /** What was to be written of its key, after it, is not: something else may be. */
  #comesAgain(lost: Item, behind: readonly Item[], isOfKey: (item: Item) => boolean): void {
    const later = [...this.#again.filter(isOfKey), ...this.#collected.takeOut(isOfKey)]
    this.#again = this.#again.filter((item) => !isOfKey(item))
    this.#again.push(...this.#parts.onOutrun([...behind, ...later], lost))
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
    // A batch is written claim by claim: some may be written.
    this.#noAnswer(batch)
    const middle = batch.length >> 1
    // The rest comes next, unless something of the first half turns out to be lost and this stands behind it.
    this.#again.unshift(...batch.slice(middle))
    await this.#write(batch.slice(0, middle))
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
