import { CommitpostError } from '../runtime/errors.ts'

/** What ends a turn when what it writes is refused: the lease is not what it was. */
export function leaseLost(): CommitpostError {
  return new CommitpostError(
    'LEASE_LOST',
    'The log is read by another worker now, or the subscription takes more than before or was retired.',
  )
}
