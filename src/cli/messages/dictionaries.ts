import type { Language } from '../../runtime/language.ts'
import type { Messages } from './messages.ts'

const DICTIONARIES: Readonly<Record<Language, () => Promise<Messages>>> = {
  en: async () => (await import('./en.ts')).en,
  ko: async () => (await import('./ko.ts')).ko,
}

/** Loads the dictionary of a language: nobody reads two. */
export function messagesIn(language: Language): Promise<Messages> {
  return DICTIONARIES[language]()
}
