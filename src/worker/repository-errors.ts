import { CommitpostError, NotFoundError } from '../runtime/errors.ts'
import { shown } from '../runtime/option-checks.ts'

/** Why a closed repository does nothing. */
export function closedError(subscription: string): CommitpostError {
  return new CommitpostError(
    'INVALID_STATE',
    `The repository of "${subscription}" is closed, and what it held was given back. Nothing was written: make a new one.`,
  )
}

/** Why some of what was marked is not written. */
export function lockedError(ids: readonly string[]): CommitpostError {
  return new CommitpostError(
    'INVALID_STATE',
    `The deliveries of these events are locked by another transaction, so nothing was written for them: ${ids.join(', ')}. ` +
      'They are still held: mark them again when that transaction has ended.',
  )
}

/** Why one that was marked is not written. */
export function notHeldError(id: string, subscription: string): NotFoundError {
  const message =
    `There is no delivery of event ${shown(id)} to "${subscription}" in hand: findPending of this repository has not ` +
    'returned it, or it was marked or lost before. Nothing was written for it.'
  return new NotFoundError('delivery', id, { message })
}

/** Why nothing is found for a subscription any more. */
export function retiredError(subscription: string, retiredBy: string | null): CommitpostError {
  return new CommitpostError(
    'INVALID_STATE',
    `Subscription "${subscription}" was retired${retiredBy === null ? '' : ` by ${retiredBy}`}: nothing is found for it ` +
      'any more. A new repository of that name begins a new subscription.',
  )
}
