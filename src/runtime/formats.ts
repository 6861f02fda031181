import type { Language } from './language.ts'

/** Numbers and times as the language writes them. */
export interface Formats {
  /** 12,345 */
  readonly count: (value: number) => string
  /** A time of day with its date, in the zone of the machine. */
  readonly time: (at: Date) => string
  /** A length of time in its two largest units: "1 h 5 min". */
  readonly age: (seconds: number) => string
  /** 12 ms, 1.3 s */
  readonly latency: (ms: number) => string
}

const UNITS = [
  { seconds: 86_400, unit: 'day' },
  { seconds: 3_600, unit: 'hour' },
  { seconds: 60, unit: 'minute' },
  { seconds: 1, unit: 'second' },
] as const

/** The formats of a language. Each is made when it is first used: a worker that tells of nothing needs none. */
export function formatsIn(language: Language): Formats {
  let counts: Intl.NumberFormat | undefined
  let times: Intl.DateTimeFormat | undefined
  const inUnit = (value: number, unit: string, fractionDigits = 0): string =>
    new Intl.NumberFormat(language, {
      style: 'unit',
      unit,
      unitDisplay: 'short',
      maximumFractionDigits: fractionDigits,
    }).format(value)
  return {
    count: (value) => {
      counts ??= new Intl.NumberFormat(language)
      return counts.format(value)
    },
    time: (at) => {
      times ??= new Intl.DateTimeFormat(language, {
        dateStyle: 'medium',
        timeStyle: 'medium',
        hourCycle: 'h23',
      })
      return times.format(at)
    },
    age: (seconds) => ageText(seconds, inUnit),
    latency: (ms) =>
      ms < 1_000 ? inUnit(ms, 'millisecond', ms < 10 ? 1 : 0) : inUnit(ms / 1_000, 'second', 1),
  }
}

function ageText(seconds: number, inUnit: (value: number, unit: string) => string): string {
  const whole = Math.max(0, Math.floor(seconds))
  const first = UNITS.findIndex((unit) => whole >= unit.seconds)
  const large = UNITS[first]
  if (large === undefined) return inUnit(0, 'second')
  const small = UNITS[first + 1]
  const rest = whole % large.seconds
  const text = inUnit(Math.floor(whole / large.seconds), large.unit)
  if (small === undefined || rest < small.seconds) return text
  return `${text} ${inUnit(Math.floor(rest / small.seconds), small.unit)}`
}
