import { redact } from '../runtime/redact.ts'
import type { DeadLetter } from '../store/dead-letter-store.ts'

/** A dead letter to be shown: what handlers threw may hold a connection string, whatever else was masked before. */
export function redactedLetter(letter: DeadLetter): DeadLetter {
  return {
    ...letter,
    errorMessage: redact(letter.errorMessage),
    attemptHistory: letter.attemptHistory.map((record) => ({ ...record, message: redact(record.message) })),
  }
}
