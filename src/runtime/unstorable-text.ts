// With the u flag a paired surrogate is one character, so \p{Surrogate} finds the lone ones only.
const UNSTORABLE = /\0|\p{Surrogate}/u

/** Why no database of ours can store this text, or null when all can. */
export function unstorableText(text: string): string | null {
  const found = UNSTORABLE.exec(text)
  if (found === null) return null
  return found[0] === '\0'
    ? `contains a NUL character (U+0000) at offset ${found.index}, which no database can store as text`
    : `contains half of a surrogate pair at offset ${found.index}: the text was cut inside a character`
}
