import type { Clock } from '../runtime/clock.ts'
import type { StreamProgress } from '../store/stream-store.ts'
import { leaseLost } from './lease-lost.ts'

/** A place in the log, and the snapshot that travelled there, if one did. */
export interface LogPlace {
  readonly lsn: bigint
  readonly snapshot: string | null
}

/** The later place, with the last snapshot that travelled to either. */
export function mergePlaces(earlier: LogPlace, later: LogPlace): LogPlace {
  return { lsn: later.lsn, snapshot: later.snapshot ?? earlier.snapshot }
}

/** Where progress is written, and who is told. */
export interface ProgressRecorderParts {
  /** False when the lease is another's. */
  record(progress: StreamProgress): Promise<boolean>
  /** It is recorded: the server need not keep what is before it. */
  confirm(lsn: bigint): void
  /** Past this, nothing is left of what a vanished reader may have had in hand. */
  readonly settledAt: bigint
  readonly clock: Clock
  onFailed(error: unknown): void
}

/** The pause between two records: what is handled meanwhile comes again if this process vanishes. */
const EVERY_MS = 200
/** Nor more than these. */
const MOST_PLACES = 5_000

/** Records how far the log was handled, a few times a second, and only then lets the server forget it. */
export class ProgressRecorder {
  readonly #parts: ProgressRecorderParts
  #lsn: bigint | null = null
  #snapshot: string | null = null
  #places = 0
  #writing: Promise<void> | null = null
  #hurry = new AbortController()

  constructor(parts: ProgressRecorderParts) {
    this.#parts = parts
  }

  /** Everything before these places has ended; the last is the farthest. */
  passed(places: readonly LogPlace[]): void {
    for (const { lsn, snapshot } of places) {
      this.#lsn = lsn
      if (snapshot !== null) this.#snapshot = snapshot
    }
    this.#places += places.length
    if (this.#places >= MOST_PLACES) this.#hurry.abort()
    this.#writing ??= this.#write()
  }

  /** Resolves when everything is recorded, or could not be. */
  async flush(): Promise<void> {
    this.#hurry.abort()
    await this.#writing
  }

  async #write(): Promise<void> {
    try {
      while (this.#lsn !== null) {
        await this.#writeNext(this.#lsn)
        await this.#parts.clock.sleep(EVERY_MS, this.#hurry.signal)
        if (this.#hurry.signal.aborted) this.#hurry = new AbortController()
      }
    } catch (error) {
      this.#parts.onFailed(error)
    } finally {
      // In the same breath in which nothing was left: whoever passes the next place begins anew.
      this.#writing = null
    }
  }

  async #writeNext(lsn: bigint): Promise<void> {
    const snapshot = this.#snapshot
    this.#lsn = null
    this.#snapshot = null
    this.#places = 0
    const settled = lsn >= this.#parts.settledAt
    if (!(await this.#parts.record({ lsn, snapshot, settled }))) throw leaseLost()
    this.#parts.confirm(lsn)
  }
}
