import { InvalidOptionsError } from './errors.ts'
import { shown } from './option-checks.ts'

/** The units a duration's text can have. */
export type DurationUnit = 'ms' | 's' | 'sec' | 'm' | 'min' | 'h' | 'hour' | 'hours' | 'd' | 'day' | 'days'

/** A length of time: a number of milliseconds, or text such as '500ms', '1m', '5 min', '24h'. */
export type Duration = number | `${number}${'' | ' '}${DurationUnit}`

/** A hundred years: longer than any database has kept anything, and short enough for its clock. */
export const LONGEST_AGE: Duration & string = '36525d'

const UNIT_MS: Readonly<Record<DurationUnit, number>> = {
  ms: 1,
  s: 1_000,
  sec: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  hours: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
  days: 86_400_000,
}

const DURATION_TEXT = /^(\d+(?:\.\d+)?) ?([a-z]+)$/

/** What is wrong with a duration, as a sentence without its subject; null if nothing is. */
export function durationProblem(value: unknown): string | null {
  if (toMs(value) !== null) return null
  return `must be milliseconds (1500) or text with a unit ('500ms', '5s', '1m', '2h', '7d'), but is ${shown(value)}`
}

/**
 * The duration in milliseconds. Throws `InvalidOptionsError` naming `what` if it cannot be read. Takes any text, not
 * only a `Duration`, so that it can read settings.
 */
export function parseDuration(value: number | string, what = 'duration'): number {
  const ms = toMs(value)
  if (ms === null) throw new InvalidOptionsError(what, [`${what} ${durationProblem(value)}`])
  return ms
}

function toMs(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) && value >= 0 ? value : null
  if (typeof value !== 'string') return null
  const match = DURATION_TEXT.exec(value.trim().toLowerCase())
  if (match === null) return null
  const unitMs = Object.hasOwn(UNIT_MS, match[2] as string) ? UNIT_MS[match[2] as DurationUnit] : null
  return unitMs === null ? null : Number(match[1]) * unitMs
}
