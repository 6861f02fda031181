import { LANGUAGES, type Language } from '../runtime/language.ts'

/** What the environment asks for: Korean where the locale of messages starts with "ko", else English. */
export function languageOf(env: Readonly<Record<string, string | undefined>>): Language {
  // The order of POSIX: the first that is set and not empty decides.
  const locale = env['LC_ALL'] || env['LC_MESSAGES'] || env['LANG'] || ''
  return locale.toLowerCase().startsWith('ko') ? 'ko' : 'en'
}

/** The language of that name, or null. */
export function parseLanguage(text: string): Language | null {
  return LANGUAGES.find((language) => language === text.toLowerCase()) ?? null
}
