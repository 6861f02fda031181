import { property, textProperty } from './property.ts'

/** Long enough for any message worth reading, short enough for a row and an alert. */
export const LONGEST_ERROR_TEXT = 2_000

const MOST_CAUSES = 5
const MOST_AGGREGATED = 5
const LONGEST_THROWN_OBJECT = 500

/** What stands where a text was cut. */
export const CUT = '…'

// C0 and C1 controls but tab and line ends: NUL cannot be stored, the others let text drive a terminal.
const UNSTORABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]|\p{Surrogate}/gu
const CREDENTIALS_IN_URL = /(\w:\/\/)[^\s/@:]*:[^\s/@]*@/g

/** Text any of our databases takes: no NUL, no other controls, no lone surrogates, at most `maxLength` long. */
export function storableText(text: string, maxLength: number = LONGEST_ERROR_TEXT): string {
  return cut(withoutControls(text.slice(0, maxLength * 2)), maxLength, text.length > maxLength * 2)
}

/** A part of an error as it stands in the text that describeError makes of it, but for its length. */
export function describedPart(text: string): string {
  return withoutControls(withoutCredentials(text))
}

function withoutControls(text: string): string {
  return text.replace(UNSTORABLE, '\ufffd')
}

function withoutCredentials(text: string): string {
  return text.replace(CREDENTIALS_IN_URL, '$1***@')
}

function cut(text: string, maxLength: number, alreadyCut: boolean): string {
  if (text.length <= maxLength && !alreadyCut) return text
  const kept = text.slice(0, Math.max(0, maxLength - 1))
  const last = kept.charCodeAt(kept.length - 1)
  const endsInHalfPair = last >= 0xd800 && last <= 0xdbff
  return `${endsInHalfPair ? kept.slice(0, -1) : kept}${CUT}`
}

/**
 * One storable text for anything that can be thrown: message, the errors an AggregateError holds, and the causes.
 * Passwords in connection strings are left out. Never throws, whatever the value does when it is looked at.
 */
export function describeError(thrown: unknown, maxLength: number = LONGEST_ERROR_TEXT): string {
  const seen = new Set<unknown>()
  const parts = [describeOne(thrown, seen)]
  let cause = property(thrown, 'cause')
  while (cause !== undefined && cause !== null && !seen.has(cause) && parts.length <= MOST_CAUSES) {
    parts.push(`caused by ${describeOne(cause, seen)}`)
    cause = property(cause, 'cause')
  }
  return storableText(withoutCredentials(parts.join('; ')), maxLength)
}

function describeOne(thrown: unknown, seen: Set<unknown>): string {
  if (typeof thrown === 'string') return thrown === '' ? 'an empty string was thrown' : thrown
  if (thrown === null || typeof thrown !== 'object') return `${describePrimitive(thrown)} was thrown`
  seen.add(thrown)
  const message = textProperty(thrown, 'message')
  const name = textProperty(thrown, 'name')
  const own = message === undefined ? (name ?? describeObject(thrown)) : withName(name, message)
  return own + describeAggregated(property(thrown, 'errors'), seen)
}

function describeAggregated(aggregated: unknown, seen: Set<unknown>): string {
  try {
    if (!Array.isArray(aggregated) || aggregated.length === 0) return ''
    return ` [${describeAll(aggregated, seen)}]`
  } catch {
    return '' // a proxy that does not even tell whether it is a list
  }
}

function withName(name: string | undefined, message: string): string {
  return name === undefined || name === 'Error' || message.startsWith(`${name}:`)
    ? message
    : `${name}: ${message}`
}

function describeAll(errors: readonly unknown[], seen: Set<unknown>): string {
  const shown = errors
    .slice(0, MOST_AGGREGATED)
    .map((error) => (seen.has(error) ? '…' : describeOne(error, seen)))
  const left = errors.length - shown.length
  return shown.join(' | ') + (left > 0 ? ` | and ${left} more` : '')
}

function describePrimitive(value: unknown): string {
  return typeof value === 'function' ? 'a function' : String(value)
}

function describeObject(thrown: object): string {
  try {
    const json = JSON.stringify(thrown)
    if (typeof json === 'string') return `${cut(json, LONGEST_THROWN_OBJECT, false)} was thrown`
  } catch {
    // Circular, a BigInt inside, or a getter that throws: its kind is all that can be said.
  }
  return 'an object without a message was thrown'
}
