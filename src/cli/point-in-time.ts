import { systemClock } from '../runtime/clock.ts'
import { parseDuration } from '../runtime/duration.ts'
import type { Localized } from '../runtime/language.ts'
import type { OptionSpec } from './option-spec.ts'

const ISO_DATE = /^\d{4}-\d\d-\d\d$/
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?$/

/** A time as ISO 8601 writes it, in the machine's zone unless it names one, or how long ago it was: 24h. */
export function pointInTime(placeholder: string, summary: Localized): OptionSpec<Date | undefined> {
  const read: OptionSpec<Date | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    // A date alone would be taken for one of UTC.
    const time = ISO_DATE.test(given) ? `${given}T00:00` : given
    const ms = ISO_TIME.test(time) ? Date.parse(time) : systemClock.now().getTime() - agoMs(given)
    if (Number.isFinite(ms)) return { ok: true, value: new Date(ms) }
    return { ok: false, problem: messages.usage.mustBeTime(name, given) }
  }
  return { placeholder, summary, read }
}

function agoMs(given: string): number {
  try {
    return parseDuration(given)
  } catch {
    return Number.NaN
  }
}
