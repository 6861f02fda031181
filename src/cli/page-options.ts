import { type OptionSpec, rowNumber, wholeNumber } from './option-spec.ts'

const MOST = 500

/** How many are listed where nobody says. */
export const DEFAULT_LIMIT = 50

/** Options of a command that lists a page at a time, newest first. */
export interface PageOptions {
  readonly limit: OptionSpec<number | undefined>
  readonly before: OptionSpec<string | undefined>
}

export const pageOptions: PageOptions = {
  limit: wholeNumber(
    'N',
    { least: 1, most: MOST },
    {
      en: `At most this many, up to ${MOST}. Default: ${DEFAULT_LIMIT}`,
      ko: `최대 건수(${MOST} 이하)입니다. 기본값: ${DEFAULT_LIMIT}`,
    },
  ),
  before: rowNumber('ID', {
    en: 'Only ids below this one: the next page',
    ko: '이 ID보다 앞선 것만(다음 페이지)',
  }),
}
