import type { Language } from '../../runtime/language.ts'
import { en } from './en.ts'
import { ko } from './ko.ts'
import type { Messages } from './messages.ts'

const DICTIONARIES: Readonly<Record<Language, Messages>> = { en, ko }

/** The dictionary of a language. */
export function messagesIn(language: Language): Messages {
  return DICTIONARIES[language]
}
