import { dateOfHalves } from '../../runtime/server-time.ts'

/**
 * A time of the database as 16 hexadecimal digits: the microseconds since 2000, which no setting of a session changes.
 * Numbers and texts cost the server ten times as much.
 */
export const timeColumn = (time: string): string => `encode(timestamptz_send(${time}), 'hex')`

const DIGITS = 16
const HALF = DIGITS / 2
const BASE = 16
const CODE_OF_0 = 48
const CODE_OF_9 = 57
/** What is taken from the code of a letter to get its value. */
const LETTER_OFFSET = 87

/** Maps a `timeColumn`. */
export function dateOf(microseconds: string): Date {
  const upper = hexadecimal(microseconds, 0, HALF) | 0 // signed
  return dateOfHalves(upper, hexadecimal(microseconds, HALF, DIGITS))
}

/** By hand, because every text that is cut out to be read is one more for the garbage collector: two for each time. */
function hexadecimal(text: string, from: number, to: number): number {
  let value = 0
  for (let index = from; index < to; index += 1) {
    const code = text.charCodeAt(index)
    value = value * BASE + (code > CODE_OF_9 ? code - LETTER_OFFSET : code - CODE_OF_0)
  }
  return value
}
