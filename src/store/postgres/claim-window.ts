/** How fast the window grows when it held too little, and shrinks when it may hold too much. */
const GROWTH = 2
const DECAY = 0.9
const WIDEST = 1_000

/**
 * How far a claim of several lanes reads each of them before it goes on with the next, in positions from the first that is
 * there. What stands side by side in the tables is then claimed and settled together, and not a thousand events of one lane
 * from a thousand pages. Only while claims come back full: to look where to begin costs a look at every lane.
 */
export class ClaimWindow {
  /** Positions for each event that is taken: 1 where all of them are of this worker's lanes. */
  #perEvent = 1
  #isBacklog = false

  /** The width for the next claim of so many; 0 for none. */
  next(limit: number): number {
    return this.#isBacklog ? Math.ceil(limit * this.#perEvent) : 0
  }

  /** Takes note of the positions, in order, that a claim of so many brought in a window of this width. */
  taken(positions: readonly string[], limit: number, width: number): void {
    const [first, last] = [positions[0], positions.at(-1)]
    this.#isBacklog = positions.length >= limit
    if (width === 0 || first === undefined || last === undefined || !this.#isBacklog) return
    const isBeyond = BigInt(last) - BigInt(first) >= BigInt(width)
    this.#perEvent = Math.min(WIDEST, Math.max(1, this.#perEvent * (isBeyond ? GROWTH : DECAY)))
  }
}
