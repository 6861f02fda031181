import { isRowNumber, type OptionSpec, required, rowNumber, text } from './option-spec.ts'

/** Which plan. */
export const planOperand: OptionSpec<string> = required(
  rowNumber('plan', {
    en: 'The number of the plan',
    ko: '재처리 계획 번호입니다',
  }),
)

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

/** Numbers of rows with commas between, no more of them than that. */
export function rowNumbers(
  most: number,
  summary: OptionSpec<unknown>['summary'],
): OptionSpec<readonly string[] | undefined> {
  const read: OptionSpec<readonly string[] | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    const value = given.split(',').map((id) => id.trim())
    if (!value.every(isRowNumber))
      return { ok: false, problem: messages.redrive.mustBeRowNumbers(name, given) }
    if (value.length <= most) return { ok: true, value }
    return { ok: false, problem: messages.redrive.mustBeFewer(name, most, value.length) }
  }
  return { placeholder: 'ID,ID', summary, read }
}

/** An ordering key. It may be empty: that of a subscription in total order. */
export const keyOperand: OptionSpec<string> = required(
  text('key', { en: 'The ordering key', ko: '순서 키입니다' }),
)
