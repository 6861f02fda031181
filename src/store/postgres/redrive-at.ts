import type { DeadLetter } from '../dead-letter-store.ts'
import { dateOf, timeColumn } from './time-column.ts'

const NEVER = 'never'

/** When a policy re-drives the dead letter that is called so: what of a resolved one is left of that means nothing. */
export const redriveColumn = (letter: string): string =>
  `case when ${letter}.resolved then null when ${letter}.redrive_at = 'infinity' then '${NEVER}'
         else ${timeColumn(`${letter}.redrive_at`)} end`

/** Maps a `redriveColumn`. */
export function redriveAtOf(column: string | null | undefined): DeadLetter['redriveAt'] {
  if (column === null || column === undefined) return null
  return column === NEVER ? NEVER : dateOf(column)
}
