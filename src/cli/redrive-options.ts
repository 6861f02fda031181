import { type OptionSpec, requiredRowNumber } from './option-spec.ts'

/** Which plan. */
export const planOperand: OptionSpec<string> = requiredRowNumber('plan', {
  en: 'The number of the plan',
  ko: '재처리 계획 번호입니다',
})

const TIME = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/

/** A time: ISO 8601, in the zone of the machine where none is said. */
export function time(summary: OptionSpec<unknown>['summary']): OptionSpec<Date | undefined> {
  const read: OptionSpec<Date | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    const value = new Date(TIME.test(given) ? atMidnight(given).replace(' ', 'T') : Number.NaN)
    if (!Number.isNaN(value.getTime())) return { ok: true, value }
    return { ok: false, problem: messages.redrive.mustBeTime(name, given) }
  }
  return { placeholder: 'TIME', summary, read }
}

// JavaScript takes a date alone for one in UTC, and a date with a time for one of the machine.
function atMidnight(given: string): string {
  return given.length === 'yyyy-mm-dd'.length ? `${given}T00:00` : given
}

/** A share such as 0.5 or 50%; null for never. */
export function share(summary: OptionSpec<unknown>['summary']): OptionSpec<number | null | undefined> {
  const read: OptionSpec<number | null | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    if (given === 'never') return { ok: true, value: null }
    const match = /^(\d{1,3}(?:\.\d+)?)(%?)$/.exec(given)
    const value = match === null ? 0 : Number(match[1]) / (match[2] === '%' ? 100 : 1)
    if (value > 0 && value <= 1) return { ok: true, value }
    return { ok: false, problem: messages.redrive.mustBeShare(name, given) }
  }
  return { placeholder: 'SHARE', summary, read }
}

/** Numbers of rows with commas between. */
export function rowNumbers(
  summary: OptionSpec<unknown>['summary'],
): OptionSpec<readonly string[] | undefined> {
  const read: OptionSpec<readonly string[] | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    const value = given.split(',').map((id) => id.trim())
    if (value.every((id) => /^[1-9]\d{0,18}$/.test(id))) return { ok: true, value }
    return { ok: false, problem: messages.redrive.mustBeRowNumbers(name, given) }
  }
  return { placeholder: 'ID,ID', summary, read }
}

/** An ordering key. It may be empty: that of a subscription in total order. */
export const keyOperand: OptionSpec<string> = {
  placeholder: 'key',
  summary: { en: 'The ordering key', ko: '순서 키입니다' },
  read: (given, name, messages) =>
    given === undefined
      ? { ok: false, problem: messages.usage.isRequired(name, keyOperand.summary) }
      : { ok: true, value: given },
}
