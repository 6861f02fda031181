import { NotFoundError } from '../../runtime/errors.ts'
import { driverErrorOf } from './driver-error.ts'
import { refusal, refusalMessage } from './refusal.ts'

/** What the database's functions refuse, in the library's own errors; all else as it is. */
export function redriveRefusal(error: unknown, planId: string | null): unknown {
  const refused = driverErrorOf(error)
  if (refused?.code === 'P0002') {
    if (planId !== null) return new NotFoundError('plan', planId, { cause: error })
    return new NotFoundError('matching dead letter', '', { message: refusalMessage(refused), cause: error })
  }
  return refusal(error)
}
