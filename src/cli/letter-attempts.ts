import type { DeadLetter } from '../store/dead-letter-store.ts'

/** How outbox_discard says that nobody had the delivery in hand. */
const NOT_IN_HAND = 'Not delivered:'

/** How often its delivery was tried: not at all, maybe, where no failure made it dead but a decision. */
export function attemptsOf(letter: DeadLetter): number {
  const { retryCount, attemptHistory } = letter
  if (retryCount > 0 || !isDeadUntried(letter)) return retryCount + 1
  // The count of retries is 0 for one attempt and for none. Before a person's retry there may have been more of them.
  return attemptHistory.at(-1)?.attempt === 1 ? 1 : 0
}

function isDeadUntried({ reason, errorMessage }: DeadLetter): boolean {
  if (reason === 'SUBSCRIPTION_RETIRED') return errorMessage.startsWith(NOT_IN_HAND)
  return reason === 'MOVED_ASIDE' || reason === 'NO_SUBSCRIPTION'
}
