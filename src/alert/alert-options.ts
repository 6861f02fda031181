import { LANGUAGES, type Language } from '../runtime/language.ts'
import {
  booleanProblem,
  isRecord,
  oneOfProblem,
  recordProblem,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import { ALERT_RULES, type AlertRoute, type AlertSink } from './alert.ts'

/** What to tell of, from when on, whom and how. Null switches a rule off. */
export interface AlertOptions {
  /**
   * Where alerts go; `{ sink, rules }` sends only some there. Regular reports go only to the log and to routes that
   * name `report`.
   * @default the worker's log
   */
  readonly sinks?: readonly (AlertSink | AlertRoute)[]
  /** @default 'en' */
  readonly language?: Language
  /**
   * The name of this system in alerts.
   * @default 'commitpost'
   */
  readonly source?: string
  /**
   * True tells of every dead letter, right after the commit that made it; of more than ten at once together.
   * @default true
   */
  readonly deadLetter?: boolean
  /**
   * So many dead letters or more wait for a person.
   * @default 10
   */
  readonly unresolved?: number | null
  /**
   * So many deliveries or more of a subscription have been PENDING for longer than `stuckAfterMs`.
   * @default 100
   */
  readonly stuckPending?: number | null
  /** @default 300_000 */
  readonly stuckAfterMs?: number
  /**
   * More deliveries than this are not done yet, of one subscription.
   * @default 1_000
   */
  readonly unpublished?: number | null
  /**
   * The oldest PENDING delivery of a subscription is older than this, in milliseconds.
   * @default 60_000
   */
  readonly oldestPendingMs?: number | null
  /**
   * More dead letters than this wait for a person, of one subscription.
   * @default 10
   */
  readonly dead?: number | null
  /**
   * Deliveries of late were tried again more often than this, on average (attempts - 1).
   * @default 1
   */
  readonly meanRetries?: number | null
  /**
   * More events than this are published a second: the log stream would serve better.
   * @default 1_000
   */
  readonly eventsPerSecond?: number | null
  /**
   * A worker's heartbeat ended so long ago and it did not leave, or nobody serves a subscription that has waited so long.
   * @default 60_000
   */
  readonly workerMissingMs?: number | null
  /**
   * The log of a subscription with `engine: 'stream'` lost events within this time, in milliseconds, or the table still
   * serves in its place.
   * @default 600_000
   */
  readonly streamGapMs?: number | null
  /**
   * How often everything is looked at, in milliseconds, by all workers together.
   * @default 60_000
   */
  readonly everyMs?: number
  /**
   * How often a report is made, in milliseconds.
   * @default 600_000
   */
  readonly reportEveryMs?: number | null
  /**
   * An alarm that goes on is repeated after this time, in milliseconds.
   * @default 900_000
   */
  readonly coolDownMs?: number
  /**
   * How long a sink may take for one alert, in milliseconds.
   * @default 5_000
   */
  readonly timeoutMs?: number
  /**
   * How often a sink is tried for one alert.
   * @default 3
   */
  readonly attempts?: number
}

/** Alert options with every default filled in. */
export interface ResolvedAlertOptions {
  readonly routes: readonly AlertRoute[]
  readonly language: Language
  readonly source: string
  readonly rules: AlertRules
  readonly everyMs: number
  readonly reportEveryMs: number | null
  readonly coolDownMs: number
  readonly timeoutMs: number
  readonly attempts: number
}

/** From when on to tell of what. */
export interface AlertRules {
  readonly deadLetter: boolean
  readonly unresolved: number | null
  readonly stuckPending: number | null
  readonly stuckAfterMs: number
  readonly unpublished: number | null
  readonly oldestPendingMs: number | null
  readonly dead: number | null
  readonly meanRetries: number | null
  readonly eventsPerSecond: number | null
  readonly workerMissingMs: number | null
  readonly streamGapMs: number | null
}

const OPTION_NAMES: readonly (keyof AlertOptions)[] = [
  'sinks',
  'language',
  'source',
  'deadLetter',
  'unresolved',
  'stuckPending',
  'stuckAfterMs',
  'unpublished',
  'oldestPendingMs',
  'dead',
  'meanRetries',
  'eventsPerSecond',
  'workerMissingMs',
  'streamGapMs',
  'everyMs',
  'reportEveryMs',
  'coolDownMs',
  'timeoutMs',
  'attempts',
]

const A_DAY_MS = 86_400_000
/** Rows are counted up to a threshold: a larger one would read too many. */
const HIGHEST_COUNT = 100_000
const HIGHEST_RATE = 10_000_000
const LONGEST_SOURCE = 100

/** What is wrong with alert options, all of it. `name` is how they are called where they were given. */
export function alertProblems(options: unknown, name = 'alerts'): readonly string[] {
  const problem = recordProblem(name, options)
  if (problem !== null || !isRecord(options)) return [problem ?? '']
  const count = (option: string, least: number, most: number): string | null =>
    options[option] === null ? null : wholeNumberProblem(option, options[option], least, most)
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    ...sinksProblems(options['sinks']),
    oneOfProblem('language', options['language'], LANGUAGES),
    sourceProblem(options['source']),
    booleanProblem('deadLetter', options['deadLetter']),
    count('unresolved', 1, HIGHEST_COUNT),
    count('stuckPending', 1, HIGHEST_COUNT),
    wholeNumberProblem('stuckAfterMs', options['stuckAfterMs'], 1, A_DAY_MS),
    count('unpublished', 0, HIGHEST_COUNT),
    count('oldestPendingMs', 1, 30 * A_DAY_MS),
    count('dead', 0, HIGHEST_COUNT),
    meanProblem(options['meanRetries']),
    count('eventsPerSecond', 1, HIGHEST_RATE),
    count('workerMissingMs', 1, A_DAY_MS),
    count('streamGapMs', 1, 30 * A_DAY_MS),
    wholeNumberProblem('everyMs', options['everyMs'], 50, A_DAY_MS),
    count('reportEveryMs', 50, 30 * A_DAY_MS),
    wholeNumberProblem('coolDownMs', options['coolDownMs'], 0, 30 * A_DAY_MS),
    wholeNumberProblem('timeoutMs', options['timeoutMs'], 1, 60_000),
    wholeNumberProblem('attempts', options['attempts'], 1, 10),
  ].filter((each) => each !== null)
}

function sourceProblem(source: unknown): string | null {
  if (typeof source === 'string' && source.length > LONGEST_SOURCE)
    return `source must be at most ${LONGEST_SOURCE} characters long, but is ${source.length}`
  return textProblem('source', source)
}

function meanProblem(mean: unknown): string | null {
  if (mean === undefined || mean === null) return null
  return typeof mean === 'number' && mean >= 0 && mean <= HIGHEST_COUNT
    ? null
    : `meanRetries must be a number from 0 to ${HIGHEST_COUNT}, but is ${shown(mean)}`
}

function sinksProblems(sinks: unknown): readonly (string | null)[] {
  if (sinks === undefined) return []
  if (!Array.isArray(sinks)) return ['sinks must be a list of sinks, such as [slackSink({ url })]']
  return sinks.flatMap((given: unknown, n) =>
    isRecord(given) && 'sink' in given
      ? routeProblems(given, `sinks[${n}]`)
      : [sinkProblem(`sinks[${n}]`, given)],
  )
}

// What was given is not shown: it may be an address that is a secret.
function sinkProblem(name: string, sink: unknown): string | null {
  return typeof property(sink, 'send') === 'function'
    ? null
    : `${name} must be a sink, such as slackSink({ url }), or { sink, rules }`
}

function routeProblems(route: Readonly<Record<string, unknown>>, name: string): readonly (string | null)[] {
  const { sink, rules } = route
  const isList = Array.isArray(rules) && rules.length > 0
  return [
    sinkProblem(`${name}.sink`, sink),
    ...unknownOptionProblems(route, ['sink', 'rules']),
    ...(isList
      ? rules.map((rule: unknown, n) => oneOfProblem(`${name}.rules[${n}]`, rule ?? null, ALERT_RULES))
      : [`${name}.rules must be a list of at least one rule, but is ${shown(rules)}`]),
  ]
}

/** Fills in the defaults. The caller has seen to it that there are no problems. */
export function resolveAlertOptions(options: AlertOptions, log: AlertSink): ResolvedAlertOptions {
  const given = <Value>(value: Value | undefined, fallback: Value): Value =>
    value === undefined ? fallback : value
  return {
    routes: (options.sinks ?? [log]).map(toRoute),
    language: options.language ?? 'en',
    source: options.source ?? 'commitpost',
    rules: {
      deadLetter: options.deadLetter ?? true,
      unresolved: given(options.unresolved, 10),
      stuckPending: given(options.stuckPending, 100),
      stuckAfterMs: options.stuckAfterMs ?? 300_000,
      unpublished: given(options.unpublished, 1_000),
      oldestPendingMs: given(options.oldestPendingMs, 60_000),
      dead: given(options.dead, 10),
      meanRetries: given(options.meanRetries, 1),
      eventsPerSecond: given(options.eventsPerSecond, 1_000),
      workerMissingMs: given(options.workerMissingMs, 60_000),
      streamGapMs: given(options.streamGapMs, 600_000),
    },
    everyMs: options.everyMs ?? 60_000,
    reportEveryMs: given(options.reportEveryMs, 600_000),
    coolDownMs: options.coolDownMs ?? 900_000,
    timeoutMs: options.timeoutMs ?? 5_000,
    attempts: options.attempts ?? 3,
  }
}

function toRoute(given: AlertSink | AlertRoute): AlertRoute {
  if ('sink' in given) return given
  return {
    sink: given,
    rules: ALERT_RULES.filter((rule) => rule !== 'report' || given.takesReports === true),
  }
}
