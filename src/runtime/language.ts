/** The languages in which people are spoken to. */
export type Language = 'en' | 'ko'

/** All languages, the default first. */
export const LANGUAGES: readonly Language[] = ['en', 'ko']

/** One text in every language: leaving one out does not compile. */
export type Localized = Readonly<Record<Language, string>>
