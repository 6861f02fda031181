const EPOCH_MS = Date.UTC(2000, 0, 1)
const FARTHEST_MS = 8.64e15
const UPPER_HALF = 2 ** 32

/**
 * A time as PostgreSQL sends it, a 64-bit number of microseconds since 2000 in two halves, the upper one signed, to the
 * nearest millisecond. What JavaScript cannot hold (`infinity`) is the farthest it can.
 */
export function dateOfHalves(upper: number, lower: number): Date {
  const ms = Math.round((upper * UPPER_HALF + lower) / 1_000) + EPOCH_MS
  return new Date(Math.min(FARTHEST_MS, Math.max(-FARTHEST_MS, ms)))
}
