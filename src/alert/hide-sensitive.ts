import type { Masking } from '../event/masking.ts'
import { redact } from '../runtime/redact.ts'
import { storableText } from '../runtime/text.ts'
import type { UntoldLetter } from '../store/alert-store.ts'

const LONGEST_ERROR = 500

/**
 * The error of a dead letter as it may be shown: on one line, without passwords, and without the values that are hidden
 * from alerts, which handlers like to quote.
 */
export function shownError(letter: UntoldLetter, masking: Masking): string {
  const { eventType: type, payload, errorMessage } = letter
  // Not the other way round: a value that holds a password would not be found again.
  const text = redact(masking.text(errorMessage, { type, payload }, 'alert'))
  return storableText(text.replaceAll(/\s+/g, ' '), LONGEST_ERROR)
}
