import type { Language } from '../runtime/language.ts'
import type { AlertTexts } from './texts.ts'
import { en } from './texts-en.ts'
import { ko } from './texts-ko.ts'

const TEXTS: Readonly<Record<Language, AlertTexts>> = { en, ko }

/** The texts of a language. */
export function textsIn(language: Language): AlertTexts {
  return TEXTS[language]
}
