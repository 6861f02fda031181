import { NotFoundError } from '../../runtime/errors.ts'
import { driverErrorOf } from './driver-error.ts'
import { refusal, refusalMessage } from './refusal.ts'

/** Ids were named that no dead letter has; the detail lists them. */
const UNKNOWN_LETTERS = 'unknown-letters'

/** What the database's functions refuse, in the library's own errors; all else as it is. */
export function redriveRefusal(error: unknown, planId: string | null): unknown {
  const refused = driverErrorOf(error)
  if (refused?.code === 'P0002') {
    if (planId !== null) return new NotFoundError('plan', planId, { cause: error })
    const details = { message: refusalMessage(refused), cause: error }
    if (refused.constraint === UNKNOWN_LETTERS)
      return new NotFoundError('named dead letter', refused.detail ?? '', details)
    return new NotFoundError('matching dead letter', '', details)
  }
  return refusal(error)
}
