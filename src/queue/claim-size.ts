/** Between which bounds a claim's size may move. */
export interface ClaimSizeOptions {
  /** How many handlers run at once. */
  readonly concurrency: number
  /** The most deliveries one claim may take. */
  readonly batchSize: number
  /** False takes exactly `batchSize` each time, as far as there is room. */
  readonly drain: boolean
  /** So many are always in hand if there are as many, however large they are. */
  readonly leastInHand: number
}

/** What a runner has in hand when it asks how much to claim. */
export interface Load {
  /** Deliveries that could start now if a handler were free. */
  readonly ready: number
  readonly running: number
  /** Everything under lease and not yet settled. */
  readonly inHand: number
  /** How much text that is. */
  readonly characters: number
}

/** How much text may be in hand: events may be large, and a batch of such would be more than a process has room for. */
export const MOST_CHARACTERS: number = 32 * 1_024 ** 2

// About a second's work is enough to keep handlers busy, and little enough for a crash or another worker.
const AHEAD_MS = 1_000
const SHORTEST_SAMPLE_MS = 1
// One being run, one ready, one on its way.
const BATCHES_IN_HAND = 3
const SMOOTHING = 0.5
// Before it is known how large events are.
const UNKNOWN_AT_ONCE = 100

/**
 * How much to claim next. Starts small, doubles while claims come back full, and never asks for more than about one
 * second of what the handlers got through lately: slow handlers must not sit on leases that others could work on.
 */
export class ClaimSize {
  readonly #options: ClaimSizeOptions
  #size: number
  /** Deliveries per second while handlers were busy; null until something was measured. */
  #perSecond: number | null = null
  /** How much text a delivery is, by the last claims; null before the first. */
  #charactersEach: number | null = null

  constructor(options: ClaimSizeOptions) {
    this.#options = options
    this.#size = Math.min(options.batchSize, options.concurrency * 2)
  }

  /** Takes note of how a claim came out. It counts as full from a quarter on: retries alone get no more of it. */
  claimed(asked: number, got: number, characters: number): void {
    if (got > 0) this.#weighed(characters / got)
    if (got * 4 >= asked) this.#size = Math.min(this.#options.batchSize, Math.max(this.#size, asked) * 2)
  }

  /** Takes note of how many handlers ended in a time during which some were running. */
  worked(ended: number, busyMs: number): void {
    if (busyMs < SHORTEST_SAMPLE_MS || (ended === 0 && busyMs < AHEAD_MS)) return
    const sample = (ended * 1_000) / busyMs
    this.#perSecond = this.#perSecond === null ? sample : mix(this.#perSecond, sample)
  }

  /** How many deliveries to ask for now; 0 means not yet. */
  next(load: Load): number {
    const { concurrency, batchSize, drain } = this.#options
    const room = this.#room(load)
    if (room <= 0) return 0
    if (!drain) return Math.min(batchSize, room)
    const aheadLimit = this.#perSecond === null ? this.#size : (this.#perSecond * AHEAD_MS) / 1_000
    if (this.#perSecond !== null && aheadLimit < concurrency) {
      // Slower than one round a second: reading ahead would only keep events from workers that are free.
      return Math.max(0, Math.min(concurrency - load.running - load.ready, room))
    }
    const size = Math.max(Math.min(concurrency, batchSize), Math.min(this.#size, Math.floor(aheadLimit)))
    // Handlers that are through a claim in less time than it takes to make one are kept a whole claim ahead of.
    const enough = size * 2 <= aheadLimit ? size + 1 : size / 2
    return load.ready < enough ? Math.min(size, room) : 0
  }

  // Larger ones count at once, smaller ones by and by.
  #weighed(each: number): void {
    this.#charactersEach = Math.max(each, mix(this.#charactersEach ?? each, each))
  }

  #room({ inHand, characters }: Load): number {
    const { batchSize, leastInHand, drain } = this.#options
    const places = batchSize * BATCHES_IN_HAND - inHand
    if (this.#charactersEach === null && !drain) return places
    const fitting =
      this.#charactersEach === null
        ? UNKNOWN_AT_ONCE
        : Math.floor((MOST_CHARACTERS - characters) / Math.max(1, this.#charactersEach))
    return Math.min(places, Math.max(fitting, leastInHand - inHand))
  }
}

function mix(before: number, sample: number): number {
  return before * (1 - SMOOTHING) + sample * SMOOTHING
}
