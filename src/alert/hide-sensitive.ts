import type { Catalogue } from '../event/catalogue.ts'
import { sensitivePaths } from '../event/event-spec.ts'
import { maskPayload } from '../event/mask-payload.ts'
import { redact } from '../runtime/redact.ts'
import { storableText } from '../runtime/text.ts'
import type { UntoldLetter } from '../store/alert-store.ts'

const MASK = '***'
/** Shorter values are in every text: hiding them would hide the text and not the value. */
const SHORTEST = 3
const LONGEST_ERROR = 500

/**
 * The error of a dead letter as it may be shown: on one line, without passwords, and without the values that the
 * catalogue hides from alerts, which handlers like to quote. Of an event that the catalogue does not know, all values
 * are hidden.
 */
export function shownError(letter: UntoldLetter, catalogue: Catalogue | null): string {
  const hidden = hiddenValues(letter, catalogue).toSorted((one, other) => other.length - one.length)
  const text = hidden.reduce((shown, value) => shown.replaceAll(value, MASK), redact(letter.errorMessage))
  return storableText(text.replaceAll(/\s+/g, ' '), LONGEST_ERROR)
}

function hiddenValues(letter: UntoldLetter, catalogue: Catalogue | null): readonly string[] {
  const spec = catalogue?.findStored(letter.eventType) ?? catalogue?.find(letter.eventType)
  if (spec === undefined) return leavesOf(letter.payload)
  const hole = {}
  return differences(letter.payload, maskPayload(letter.payload, sensitivePaths(spec, 'alert'), hole), hole)
}

/** What of the original stands where the masked one has the hole. */
function differences(original: unknown, masked: unknown, hole: object): readonly string[] {
  if (masked === hole) return leavesOf(original)
  if (original === masked || typeof original !== 'object' || original === null) return []
  return Object.entries(original).flatMap(([name, value]) =>
    differences(value, Reflect.get(masked as object, name), hole),
  )
}

function leavesOf(value: unknown): readonly string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(leavesOf)
  if (typeof value !== 'string' && typeof value !== 'number') return []
  const text = String(value)
  return text.length < SHORTEST ? [] : [text]
}
