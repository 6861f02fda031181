import { InvalidOptionsError } from './errors.ts'
import { suggest } from './suggest.ts'
import { unstorableText } from './unstorable-text.ts'

/** An options object as it arrived: readable by name, nothing else known about it. */
export type GivenOptions = Readonly<Record<string, unknown>>

/** True for what can hold options: an object, but no list and no function. */
export function isRecord(value: unknown): value is GivenOptions {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What is wrong with something that must be an object, as a sentence; null if nothing is. */
export function recordProblem(name: string, value: unknown): string | null {
  return isRecord(value) ? null : `${name} must be an object, but is ${shown(value)}`
}

/** What is wrong with an optional whole number, as a sentence; null if nothing is. */
export function wholeNumberProblem(name: string, value: unknown, least: number, most: number): string | null {
  if (value === undefined) return null
  const isFine = Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most
  return isFine ? null : `${name} must be a whole number from ${least} to ${most}, but is ${shown(value)}`
}

/** What is wrong with an optional choice, as a sentence; null if nothing is. */
export function oneOfProblem(name: string, value: unknown, choices: readonly string[]): string | null {
  if (value === undefined || choices.some((choice) => choice === value)) return null
  return `${name} must be one of ${choices.map((choice) => `'${choice}'`).join(', ')}, but is ${shown(value)}`
}

/** What is wrong with an optional switch, as a sentence; null if nothing is. */
export function booleanProblem(name: string, value: unknown): string | null {
  return value === undefined || typeof value === 'boolean'
    ? null
    : `${name} must be true or false, but is ${shown(value)}`
}

/** What is wrong with an optional function, as a sentence; null if nothing is. */
export function functionProblem(name: string, value: unknown): string | null {
  return value === undefined || typeof value === 'function'
    ? null
    : `${name} must be a function, but is ${shown(value)}`
}

/** What is wrong with an optional list of functions, as a sentence; null if nothing is. */
export function functionListProblem(name: string, value: unknown): string | null {
  if (value === undefined) return null
  if (!Array.isArray(value)) return `${name} must be a list of functions, but is ${shown(value)}`
  const stranger = value.findIndex((item) => typeof item !== 'function')
  return stranger < 0 ? null : functionProblem(`${name}[${stranger}]`, value[stranger] ?? null)
}

/** What is wrong with an optional object that has to have these methods, as a sentence; null if nothing is. */
export function methodsProblem(name: string, value: unknown, methods: readonly string[]): string | null {
  if (value === undefined) return null
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function'
  const isFine = isObject && methods.every((method) => typeof Reflect.get(value, method) === 'function')
  return isFine ? null : `${name} must have the methods ${methods.join(', ')}, but is ${shown(value)}`
}

/** What is wrong with an optional text, as a sentence; null if nothing is. An empty one is none. */
export function textProblem(name: string, value: unknown): string | null {
  if (value === undefined || (typeof value === 'string' && value.trim() !== '')) return null
  return `${name} must be text that is not empty, but is ${shown(value)}`
}

/** What is wrong with an optional list of patterns, as a sentence; null if nothing is. */
export function patternListProblem(name: string, value: unknown): string | null {
  if (value === undefined) return null
  const isList = Array.isArray(value) && value.length > 0
  const isFine = isList && value.every((pattern) => typeof pattern === 'string' && pattern !== '')
  if (!isFine) return `${name} must be a list of at least one stream name or pattern`
  const [problem] = (value as readonly string[]).flatMap((pattern) => unstorableText(pattern) ?? [])
  return problem === undefined ? null : `${name}: a stream name ${problem}`
}

/** What is wrong with an optional name that is stored, as a sentence; null if nothing is. */
export function storedNameProblem(name: string, value: unknown, longest: number): string | null {
  if (value === undefined) return null
  const problem = textProblem(name, value)
  if (problem !== null || typeof value !== 'string') return problem
  if (value.length > longest)
    return `${name} must be at most ${longest} characters long, but is ${value.length}`
  const unstorable = unstorableText(value)
  return unstorable === null ? null : `${name} ${unstorable}`
}

/**
 * Options that do not exist, each as a sentence: a misspelt one would otherwise leave the default in force. `elsewhere`
 * says for names that other libraries use what to use here.
 */
export function unknownOptionProblems(
  options: object,
  known: readonly string[],
  elsewhere: Readonly<Record<string, string>> = {},
): string[] {
  return Object.keys(options)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const advice = Object.hasOwn(elsewhere, name) ? `; ${elsewhere[name]}` : meant(name, known)
      return `there is no option ${shown(name)}${advice}`
    })
}

/** `; did you mean "x"?`, or all names where none is near. */
export function meant(name: string, known: readonly string[]): string {
  const near = suggest(name, known)
  return near === null ? `; known are ${known.join(', ')}` : `; did you mean "${near}"?`
}

/** Throws an `InvalidOptionsError` with all problems together, unless there are none. Nulls are none. */
export function refuseProblems(what: string, problems: readonly (string | null)[]): void {
  const found = problems.filter((problem) => problem !== null)
  if (found.length > 0) throw new InvalidOptionsError(what, found)
}

const LONGEST_SHOWN = 60

/** A value in the words of an error message: short, on one line, and never failing. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}…` : value)
    case 'function':
      return 'a function'
    case 'object':
      if (value === null) return 'null'
      return Array.isArray(value) ? `a list of ${value.length}` : 'an object'
    case 'bigint':
      return `${String(value)}n`
    case 'symbol':
    case 'undefined':
    case 'boolean':
    case 'number':
    default:
      return String(value)
  }
}
