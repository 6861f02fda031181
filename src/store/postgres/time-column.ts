import { dateOfHalves } from '../../runtime/server-time.ts'

/**
 * A time of the database as 16 hexadecimal digits: the microseconds since 2000, which no setting of a session changes.
 * Numbers and texts cost the server ten times as much.
 */
export const timeColumn = (time: string): string => `encode(timestamptz_send(${time}), 'hex')`

/** Maps a `timeColumn`. */
export function dateOf(microseconds: string): Date {
  const upper = Number.parseInt(microseconds.slice(0, 8), 16) | 0 // signed
  return dateOfHalves(upper, Number.parseInt(microseconds.slice(8), 16))
}
