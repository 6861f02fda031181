import { systemClock } from '../runtime/clock.ts'
import { parseDuration } from '../runtime/duration.ts'
import type { Localized } from '../runtime/language.ts'
import { EARLIEST_TIME_MS, LATEST_TIME_MS } from '../runtime/time-bounds.ts'
import type { Invocation } from './command.ts'
import type { OptionSpec } from './option-spec.ts'
import { usageError } from './parse.ts'

const ISO_DATE = /^\d{4}-\d\d-\d\d$/
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?$/

const FIRST_YEAR = new Date(EARLIEST_TIME_MS).getUTCFullYear()
const LAST_YEAR = new Date(LATEST_TIME_MS).getUTCFullYear()

/** A time as ISO 8601 writes it, in the machine's zone unless it names one, or how long ago it was: 24h. */
export function pointInTime(placeholder: string, summary: Localized): OptionSpec<Date | undefined> {
  const read: OptionSpec<Date | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    // A date alone would be taken for one of UTC.
    const time = ISO_DATE.test(given) ? `${given}T00:00` : given
    const ms = ISO_TIME.test(time) ? Date.parse(time) : systemClock.now().getTime() - agoMs(given)
    if (!Number.isFinite(ms)) return { ok: false, problem: messages.usage.mustBeTime(name, given) }
    return ms >= EARLIEST_TIME_MS && ms <= LATEST_TIME_MS
      ? { ok: true, value: new Date(ms) }
      : { ok: false, problem: messages.usage.mustBeOfYears(name, FIRST_YEAR, LAST_YEAR, given) }
  }
  return { placeholder, summary, read }
}

/** A stretch of time as a command was given it. */
export interface Stretch {
  readonly from: Date | undefined
  readonly to: Date | undefined
  /** The options that say so: `--since`, `--until`. */
  readonly names: readonly [from: string, to: string]
}

/** Nothing can lie in a stretch that ends before it begins. @throws CliError of code USAGE where it does. */
export function refuseReversed(
  { from, to, names }: Stretch,
  commandName: string,
  { messages }: Pick<Invocation<unknown>, 'messages'>,
): void {
  if (from !== undefined && to !== undefined && from.getTime() >= to.getTime())
    throw usageError([messages.usage.mustBeLater(names[1], names[0])], commandName)
}

function agoMs(given: string): number {
  try {
    return parseDuration(given)
  } catch {
    return Number.NaN
  }
}
