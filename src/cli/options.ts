import type { Language } from '../runtime/language.ts'
import { languageOf, parseLanguage } from './language.ts'
import { databaseName, flag, type OptionSpec, text } from './option-spec.ts'

/** The schema Commitpost's tables live in unless told otherwise. */
export const DEFAULT_SCHEMA = 'commitpost'
/** The longest name that PostgreSQL keeps. */
export const LONGEST_NAME_BYTES = 63

const language: OptionSpec<Language | undefined> = {
  placeholder: 'en|ko',
  summary: {
    en: 'The language of what is printed. Default: from LC_ALL, LC_MESSAGES or LANG',
    ko: '출력 언어입니다. 기본값: LC_ALL, LC_MESSAGES, LANG에서 정합니다',
  },
  read: (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    const value = parseLanguage(given)
    if (value !== null) return { ok: true, value }
    return { ok: false, problem: messages.usage.mustBeOneOf(name, ['en', 'ko'], given) }
  },
}

/** The options that every command takes. */
export interface GlobalOptions {
  readonly database: OptionSpec<string | undefined>
  readonly schema: OptionSpec<string | undefined>
  readonly lang: OptionSpec<Language | undefined>
  readonly json: OptionSpec<boolean>
  readonly debug: OptionSpec<boolean>
  readonly help: OptionSpec<boolean>
}

/** How the common options are read and explained. */
export const globalOptions: GlobalOptions = {
  database: text('URL', {
    en: 'The database, as postgres://user@host:port/name. Default: DATABASE_URL',
    ko: '데이터베이스 주소입니다(postgres://user@host:port/name). 기본값: DATABASE_URL',
  }),
  schema: databaseName('NAME', LONGEST_NAME_BYTES, {
    en: `The schema of Commitpost's tables. Default: ${DEFAULT_SCHEMA}`,
    ko: `Commitpost 테이블의 스키마입니다. 기본값: ${DEFAULT_SCHEMA}`,
  }),
  lang: language,
  json: flag({
    en: 'Print JSON, for programs',
    ko: '프로그램이 읽을 수 있도록 JSON으로 출력합니다',
  }),
  debug: flag({
    en: 'Print the stack of an error, and more log lines',
    ko: '오류의 스택과 더 자세한 로그를 출력합니다',
  }),
  help: flag({ en: 'Print this help', ko: '이 도움말을 출력합니다' }),
}

/** The common options as every command gets them: read once, with their defaults. */
export interface GlobalValues {
  /** Undefined where neither the option nor DATABASE_URL names one. */
  readonly databaseUrl: string | undefined
  /** True where the database was named on the command line, not by the environment. */
  readonly databaseGiven: boolean
  readonly schema: string
  readonly schemaGiven: boolean
  readonly json: boolean
  readonly debug: boolean
}

/** The common options as they were given. */
export type GlobalReadings = {
  readonly [Name in keyof GlobalOptions]: GlobalOptions[Name] extends OptionSpec<infer Value> ? Value : never
}

/** Fills in the defaults. */
export function resolveGlobals(
  values: GlobalReadings,
  env: Readonly<Record<string, string | undefined>>,
): GlobalValues {
  return {
    databaseUrl: values.database || env['DATABASE_URL'] || undefined,
    databaseGiven: Boolean(values.database),
    schema: values.schema ?? DEFAULT_SCHEMA,
    schemaGiven: values.schema !== undefined,
    json: values.json,
    debug: values.debug,
  }
}

/** The language to speak: what was asked for, else what the environment says. Known before anything is checked. */
export function chooseLanguage(
  given: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Language {
  return (given === undefined ? null : parseLanguage(given)) ?? languageOf(env)
}
