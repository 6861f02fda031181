import { parseDuration } from '../runtime/duration.ts'
import { isUuid } from '../runtime/ids.ts'
import type { Localized } from '../runtime/language.ts'
import type { Messages } from './messages/messages.ts'

/** A value read from the command line, or what is wrong with the text that was given. */
export type Reading<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: string }

/** One option or operand: how it is shown, and how its text becomes a value. */
export interface OptionSpec<Value> {
  /** What stands for the value in the help; null for a flag, which has none. */
  readonly placeholder: string | null
  readonly summary: Localized
  /** Reads what was given after `name`; undefined where it was left out, an empty text for a flag that is there. */
  readonly read: (given: string | undefined, name: string, messages: Messages) => Reading<Value>
}

/** Options or operands by name. */
export type OptionSpecs = Readonly<Record<string, OptionSpec<unknown>>>

/** The values that a set of options is read to. */
export type ValuesOf<Specs extends OptionSpecs> = {
  readonly [Name in keyof Specs]: Specs[Name] extends OptionSpec<infer Value> ? Value : never
}

/** True where the option was given. */
export function flag(summary: Localized): OptionSpec<boolean> {
  return { placeholder: null, summary, read: (given) => ({ ok: true, value: given !== undefined }) }
}

/** Any text. */
export function text(placeholder: string, summary: Localized): OptionSpec<string | undefined> {
  return { placeholder, summary, read: (given) => ({ ok: true, value: given }) }
}

// Function bodies of the migrations are quoted with this tag.
const SQL_TAG = '$commitpost$'

/** A name in the database: PostgreSQL would cut a longer one in silence. */
export function databaseName(
  placeholder: string,
  mostBytes: number,
  summary: Localized,
): OptionSpec<string | undefined> {
  const read: OptionSpec<string | undefined>['read'] = (given, name, messages) => {
    if (given?.includes(SQL_TAG)) return { ok: false, problem: messages.usage.mustNotContain(name, SQL_TAG) }
    return given !== undefined && Buffer.byteLength(given) > mostBytes
      ? { ok: false, problem: messages.usage.mustBeShortName(name, mostBytes) }
      : { ok: true, value: given }
  }
  return { placeholder, summary, read }
}

/** A text without which the command cannot run. */
export function requiredText(placeholder: string, summary: Localized): OptionSpec<string> {
  const read: OptionSpec<string>['read'] = (given, name, messages) =>
    given === undefined || given.trim() === ''
      ? { ok: false, problem: messages.usage.isRequired(name, summary) }
      : { ok: true, value: given }
  return { placeholder, summary, read }
}

/** The same, of no more characters than that. */
export function atMost<Value>(most: number, spec: OptionSpec<Value>): OptionSpec<Value> {
  return {
    ...spec,
    read: (given, name, messages) =>
      given !== undefined && given.length > most
        ? { ok: false, problem: messages.usage.mustBeShorter(name, most, given.length) }
        : spec.read(given, name, messages),
  }
}

/** Which numbers are allowed. */
export interface Range {
  readonly least: number
  readonly most: number
}

/** A whole number of the range. */
export function wholeNumber(
  placeholder: string,
  range: Range,
  summary: Localized,
): OptionSpec<number | undefined> {
  const read: OptionSpec<number | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    const value = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN
    if (value >= range.least && value <= range.most) return { ok: true, value }
    return { ok: false, problem: messages.usage.mustBeWholeNumber(name, range.least, range.most, given) }
  }
  return { placeholder, summary, read }
}

const GREATEST_ROW_NUMBER = 2n ** 63n - 1n

/** True for a text that can be the number of something in the database. */
export function isRowNumber(given: string): boolean {
  return /^[1-9]\d{0,18}$/.test(given) && BigInt(given) <= GREATEST_ROW_NUMBER
}

/** The number of something in the database, kept as text: it may be larger than a JavaScript number can be. */
export function rowNumber(placeholder: string, summary: Localized): OptionSpec<string | undefined> {
  const read: OptionSpec<string | undefined>['read'] = (given, name, messages) =>
    given === undefined || isRowNumber(given)
      ? { ok: true, value: given }
      : { ok: false, problem: messages.usage.mustBeRowNumber(name, given) }
  return { placeholder, summary, read }
}

/** The same, without which the command cannot run. */
export function required<Value>(spec: OptionSpec<Value | undefined>): OptionSpec<Value> {
  return {
    ...spec,
    read: (given, name, messages) =>
      given === undefined
        ? { ok: false, problem: messages.usage.isRequired(name, spec.summary) }
        : (spec.read(given, name, messages) as Reading<Value>),
  }
}

/** The same, with a value for where it is left out. */
export function withDefault<Value>(spec: OptionSpec<Value | undefined>, value: Value): OptionSpec<Value> {
  return {
    ...spec,
    read: (given, name, messages) =>
      given === undefined ? { ok: true, value } : (spec.read(given, name, messages) as Reading<Value>), // what is given is read to a value
  }
}

/** A length of time such as 20s or 5m, in whole milliseconds: at most the longest, where there is one. */
export function duration(
  placeholder: string,
  summary: Localized,
  longest?: string,
): OptionSpec<number | undefined> {
  const read: OptionSpec<number | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    const value = wholeMs(given)
    if (value === null || value === 0)
      return { ok: false, problem: messages.usage.mustBeDuration(name, given) }
    return longest !== undefined && value > parseDuration(longest)
      ? { ok: false, problem: messages.usage.mustBeAtMost(name, longest, given) }
      : { ok: true, value }
  }
  return { placeholder, summary, read }
}

/** Null for a text that is no length of time: what is wrong with it is said in the user's language. */
function wholeMs(given: string): number | null {
  try {
    return Math.round(parseDuration(given))
  } catch {
    return null
  }
}

/** A number of whole days: 1d. */
export function days(placeholder: string, range: Range, summary: Localized): OptionSpec<number | undefined> {
  const read: OptionSpec<number | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    const value = Number(/^(\d{1,4})d$/.exec(given.trim())?.[1])
    if (value >= range.least && value <= range.most) return { ok: true, value }
    return { ok: false, problem: messages.usage.mustBeDays(name, range.least, range.most, given) }
  }
  return { placeholder, summary, read }
}

/** How often per second: 50 or 50/s. */
export function rate(placeholder: string, most: number, summary: Localized): OptionSpec<number | undefined> {
  const read: OptionSpec<number | undefined>['read'] = (given, name, messages) => {
    if (given === undefined) return { ok: true, value: undefined }
    const match = /^(\d{1,6}(?:\.\d+)?)(?:\/s)?$/.exec(given.trim())
    const value = match === null ? 0 : Number(match[1])
    if (value > 0 && value <= most) return { ok: true, value }
    return { ok: false, problem: messages.usage.mustBeRate(name, most, given) }
  }
  return { placeholder, summary, read }
}

/** One of these words. */
export function choice<Choice extends string>(
  placeholder: string,
  choices: readonly Choice[],
  summary: Localized,
): OptionSpec<Choice | undefined> {
  const read: OptionSpec<Choice | undefined>['read'] = (given, name, messages) => {
    const value = choices.find((known) => known === given)
    if (given === undefined || value !== undefined) return { ok: true, value }
    return { ok: false, problem: messages.usage.mustBeOneOf(name, choices, given) }
  }
  return { placeholder, summary, read }
}

/** The id of an event. */
export function uuidOfEvent(placeholder: string, summary: Localized): OptionSpec<string | undefined> {
  const read: OptionSpec<string | undefined>['read'] = (given, name, messages) =>
    given === undefined || isUuid(given)
      ? { ok: true, value: given }
      : { ok: false, problem: messages.usage.mustBeEventId(name, given) }
  return { placeholder, summary, read }
}
