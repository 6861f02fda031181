/** A source of chance: a number from 0 (included) to 1 (excluded). */
export type Random = () => number

/** The process's own randomness. Not for secrets. */
export const systemRandom: Random = () => Math.random()

/** The same sequence for the same seed, on every machine: for tests, simulations and replays. */
export function seededRandom(seed: number): Random {
  // mulberry32: 32 bits of state are plenty for jitter and test schedules.
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
