import type { Sink } from '../event/definition.ts'
import type { JsonValue } from '../event/event.ts'
import type { Masking } from '../event/masking.ts'
import type { DeadLetter } from '../store/dead-letter-store.ts'

/** A dead letter in the form it is shown in. */
export type LetterMask = (letter: DeadLetter) => DeadLetter

/** For whoever may see everything. */
export const shownAsIs: LetterMask = (letter) => letter

/** A dead letter without what is hidden from the sink: in its payload, and in the errors that quote it. */
export function maskedLetter(letter: DeadLetter, masking: Masking, sink: Sink): DeadLetter {
  const event = { type: letter.eventType, payload: letter.payload }
  if (masking.hidden(event.type, sink)?.length === 0) return letter
  return {
    ...letter,
    // What was masked is still the JSON that was read.
    payload: masking.payload(event, sink) as JsonValue,
    errorMessage: masking.text(letter.errorMessage, event, sink),
    attemptHistory: letter.attemptHistory.map((attempt) => ({
      ...attempt,
      message: masking.text(attempt.message, event, sink),
    })),
  }
}
