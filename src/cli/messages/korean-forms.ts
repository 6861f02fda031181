/**
 * An English sentence of the library and its Korean form, in which `$1` and so on take over what stands in the English
 * one: names, values, limits.
 */
export type Form = readonly [english: RegExp, korean: string]

/** The sentence by the first form that fits; null where none does. */
export function translated(text: string, forms: readonly Form[]): string | null {
  const form = forms.find(([english]) => english.test(text))
  return form === undefined ? null : text.replace(form[0], form[1])
}
