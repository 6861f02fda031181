import { CommitpostError, NotFoundError } from '../../runtime/errors.ts'
import { driverErrorOf } from './driver-error.ts'

/** What the database's functions refuse, in the library's own errors; all else as it is. */
export function deadLetterRefusal(error: unknown, id: string): unknown {
  const refused = driverErrorOf(error)
  if (refused?.code === 'P0002') return new NotFoundError('dead letter', id, { cause: error })
  if (refused?.code !== '55000') return error
  const sentence = `${refused.message[0]?.toUpperCase()}${refused.message.slice(1)}.`
  const message = refused.hint === null ? sentence : `${sentence} ${refused.hint}`
  return new CommitpostError('INVALID_STATE', message, { cause: error })
}
