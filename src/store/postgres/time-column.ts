/**
 * A time of the database as 16 hexadecimal digits: the microseconds since 2000, which no setting of a session changes.
 * Numbers and texts cost the server ten times as much.
 */
export const timeColumn = (time: string): string => `encode(timestamptz_send(${time}), 'hex')`

const EPOCH_MS = Date.UTC(2000, 0, 1)
const FARTHEST_MS = 8.64e15
const UPPER_HALF = 2 ** 32

/** Maps a `timeColumn` to the nearest millisecond. What JavaScript cannot hold (`infinity`) is the farthest it can. */
export function dateOf(microseconds: string): Date {
  const upper = Number.parseInt(microseconds.slice(0, 8), 16) | 0 // signed
  const lower = Number.parseInt(microseconds.slice(8), 16)
  const ms = Math.round((upper * UPPER_HALF + lower) / 1_000) + EPOCH_MS
  return new Date(Math.min(FARTHEST_MS, Math.max(-FARTHEST_MS, ms)))
}
