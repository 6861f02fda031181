import type { ParkedEvent } from '../store/stream-store.ts'
import { leaseLost } from './lease-lost.ts'
import type { LogEntry } from './log-window.ts'

/** Where events that are set aside go, and who is told. */
export interface ParkingParts {
  /** Writes them down. False when the lease is another's. */
  park(events: readonly ParkedEvent[]): Promise<boolean>
  onParked(entries: readonly LogEntry[]): void
  onFailed(error: unknown): void
}

interface Parked {
  readonly entry: LogEntry
  readonly as: ParkedEvent
}

/** What a statement takes at once. */
const BATCH = 1_000

/** Sets events aside as deliveries, in batches, and knows which keys the database may not have told of yet. */
export class Parking {
  readonly #parts: ParkingParts
  /** By key, how many are on their way to the database. */
  readonly #onTheirWay = new Map<string, number>()
  /** Keys that were written since the last look at the database began: that look may not have seen them. */
  readonly #unseen = new Set<string>()
  #waiting: Parked[] = []
  #writing: Promise<void> | null = null

  constructor(parts: ParkingParts) {
    this.#parts = parts
  }

  /** Whether later events of this key have to be set aside too, whatever the database says. */
  has(key: string): boolean {
    return this.#onTheirWay.has(key) || this.#unseen.has(key)
  }

  /** The database is asked which keys are open: it knows of everything that is written by now. */
  beginLook(): void {
    this.#unseen.clear()
  }

  add(entry: LogEntry, as: ParkedEvent): void {
    this.#waiting.push({ entry, as })
    if (entry.key !== null) this.#onTheirWay.set(entry.key, (this.#onTheirWay.get(entry.key) ?? 0) + 1)
    this.#writing ??= this.#write()
  }

  /** Resolves when all that was added is written, or could not be. */
  async idle(): Promise<void> {
    await this.#writing
  }

  async #write(): Promise<void> {
    try {
      // What is added in one go is written together.
      await Promise.resolve()
      while (this.#waiting.length > 0) await this.#writeNext()
    } catch (error) {
      this.#parts.onFailed(error)
    } finally {
      // In the same breath in which nothing was left: whoever adds the next begins anew.
      this.#writing = null
    }
  }

  async #writeNext(): Promise<void> {
    const batch = this.#waiting.slice(0, BATCH)
    this.#waiting = this.#waiting.slice(batch.length)
    if (!(await this.#parts.park(batch.map(({ as }) => as)))) throw leaseLost()
    for (const { entry } of batch) this.#written(entry.key)
    this.#parts.onParked(batch.map(({ entry }) => entry))
  }

  #written(key: string | null): void {
    if (key === null) return
    this.#unseen.add(key)
    const left = (this.#onTheirWay.get(key) ?? 1) - 1
    if (left > 0) this.#onTheirWay.set(key, left)
    else this.#onTheirWay.delete(key)
  }
}
