import {
  isRecord,
  methodsProblem,
  oneOfProblem,
  recordProblem,
  refuseProblems,
  unknownOptionProblems,
} from '../runtime/option-checks.ts'
import { CUT, describedPart } from '../runtime/text.ts'
import type { Catalogue } from './catalogue.ts'
import { SINKS, type Sink } from './definition.ts'
import { sensitivePaths } from './event-spec.ts'
import { maskPaths } from './mask-paths.ts'

/** What a sink gets of the fields that the catalogue calls sensitive: `***`, or what they hold. */
export type SensitiveRule = 'mask' | 'keep'

/** The rule of each sink. One that is not named masks. */
export type SensitiveOptions = Readonly<Partial<Record<Sink, SensitiveRule>>>

/** What stands in the place of what is hidden. */
export const MASK = '***'

/** Shorter values are in every text: hiding them would hide the text and not the value. */
const SHORTEST = 3

/** The event that something shown is about. */
export interface MaskedEvent {
  /** As stored, or as the catalogue names it. */
  readonly type: string
  readonly payload: unknown
}

/**
 * The one way of a payload, and of what is said about it, to whatever people or other systems read. Every sink goes
 * through it.
 */
export interface Masking {
  /** Whether a sink gets everything, whatever the catalogue says. */
  keeps(sink: Sink): boolean
  /**
   * The paths that are hidden from a sink in events of a type. Null hides the whole payload: nobody has said what in it
   * may be shown, because the type, or the catalogue, is not known.
   */
  hidden(type: string, sink: Sink): readonly string[] | null
  /** The payload as the sink may have it. The original is never changed. */
  payload(event: MaskedEvent, sink: Sink): unknown
  /** A text about the event, such as its error, without the hidden values that it may quote. */
  text(text: string, event: MaskedEvent, sink: Sink): string
}

const NOTHING: readonly string[] = []

/** Masks by what the catalogue calls sensitive and by the rule of each sink; everything, where there is no catalogue. */
export function createMasking(catalogue: Catalogue | null, rules: SensitiveOptions = {}): Masking {
  refuseProblems('createMasking', [
    // Undefined is no catalogue either, but hardly what was meant.
    catalogue === null ? null : methodsProblem('the catalogue', catalogue ?? null, ['find', 'findStored']),
    ...sensitiveProblems(rules),
  ])
  const keeps = (sink: Sink): boolean => rules[sink] === 'keep'
  const hidden: Masking['hidden'] = (type, sink) => {
    if (keeps(sink)) return NOTHING
    const spec = catalogue?.findStored(type) ?? catalogue?.find(type)
    return spec === undefined ? null : sensitivePaths(spec, sink)
  }
  return {
    keeps,
    hidden,
    payload: ({ type, payload }, sink) => {
      const paths = hidden(type, sink)
      return paths === null ? MASK : maskPaths(payload, paths, MASK)
    },
    text: (text, { type, payload }, sink) => {
      const paths = hidden(type, sink)
      if (paths !== null && paths.length === 0) return text
      const values = paths === null ? leavesOf(payload) : valuesAt(payload, paths)
      const longestFirst = values.toSorted((one, other) => other.length - one.length)
      const shown = longestFirst.reduce((rest, value) => rest.replaceAll(value, MASK), text)
      const [last = '', ...before] = shown.split(CUT).toReversed()
      return [...before.toReversed().map((part) => withoutCutValue(part, longestFirst)), last].join(CUT)
    },
  }
}

/** Long errors are cut, maybe in the middle of a value: what is left of that at the end of a part is hidden as well. */
function withoutCutValue(shown: string, values: readonly string[]): string {
  let longest = 0
  for (const value of values) {
    let length = Math.min(value.length - 1, shown.length)
    while (length >= SHORTEST && !shown.endsWith(value.slice(0, length))) length -= 1
    if (length >= SHORTEST) longest = Math.max(longest, length)
  }
  return longest === 0 ? shown : shown.slice(0, -longest) + MASK
}

/** What is wrong with the rules, each as a sentence. */
export function sensitiveProblems(rules: unknown): readonly (string | null)[] {
  if (rules === undefined) return []
  if (!isRecord(rules)) return [recordProblem('sensitive', rules)]
  return [
    ...unknownOptionProblems(rules, SINKS).map((problem) => `sensitive: ${problem}`),
    ...SINKS.map((sink) => oneOfProblem(`sensitive.${sink}`, rules[sink], ['mask', 'keep'])),
  ]
}

function valuesAt(payload: unknown, paths: readonly string[]): readonly string[] {
  const hole = {}
  return differences(payload, maskPaths(payload, paths, hole), hole)
}

/** What of the original stands where the masked one has the hole. */
function differences(original: unknown, masked: unknown, hole: object): readonly string[] {
  if (masked === hole) return leavesOf(original)
  if (original === masked || typeof original !== 'object' || original === null) return []
  return Object.entries(original).flatMap(([name, value]) =>
    differences(value, Reflect.get(masked as object, name), hole),
  )
}

function leavesOf(value: unknown): readonly string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(leavesOf)
  if (typeof value !== 'string' && typeof value !== 'number') return []
  const text = String(value)
  if (text.length < SHORTEST) return []
  // As an error has it that quotes the payload as JSON, and as either stands in what is kept of an error.
  const escaped = JSON.stringify(text).slice(1, -1)
  return [...new Set([text, escaped, describedPart(text), describedPart(escaped), ...inUrls(text)])]
}

/** As it stands in the path or the query of a URL: clients like to say which one they could not reach. */
function inUrls(text: string): readonly string[] {
  const whole = text.replaceAll(/\p{Surrogate}/gu, '\ufffd')
  return [encodeURI(whole), encodeURIComponent(whole), new URLSearchParams([['', whole]]).toString().slice(1)]
}
