import type { Settled } from '../delivery/delivery.ts'
import { CommitpostError } from '../runtime/errors.ts'
import { textProperty } from '../runtime/property.ts'

/** Why results are given up that somebody has locked. */
export function lockedError(items: readonly Settled[]): CommitpostError {
  const ids = items.map(({ delivery }) => delivery.event.eventId).join(', ')
  return new CommitpostError(
    'DEADLINE_EXCEEDED',
    `The deliveries of these events are locked by transactions that did not end before the worker had to: ${ids}. ` +
      'What such a transaction completes and commits is done; the others are delivered again when their leases lapse.',
  )
}

/** What the database said against a result. */
export function refusedError({ delivery }: Settled, error: unknown): CommitpostError {
  const reason = textProperty(error, 'message') ?? 'it gave no reason'
  return new CommitpostError(
    'STORE_REFUSED',
    `The database refuses to write down what became of event ${delivery.event.eventId}: ${reason}. ` +
      'See which trigger or constraint on outbox_delivery does that. Once it lets the result pass, it is written; if the ' +
      'lease lapses before, the event is delivered again. Of an ordered subscription its key waits so long.',
    { cause: error },
  )
}
