import { CATCH_ALL } from '../dispatch/handler.ts'
import { dispatcherProblems } from '../dispatch/options.ts'
import type { Catalogue } from '../event/catalogue.ts'
import { patternMatcher } from '../event/pattern.ts'
import {
  booleanProblem,
  functionProblem,
  type GivenOptions,
  isRecord,
  oneOfProblem,
  patternListProblem,
  recordProblem,
  shown,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import { suggest } from '../runtime/suggest.ts'
import { retryProblems } from '../settle/retry-policy.ts'
import { redrivePolicyProblems } from './redrive-policy.ts'
import { OF_HANDLERS, type SubscriptionOptions } from './subscription-options.ts'

const MOST_LANES = 64
const MOST_AT_ONCE = 10_000
/** The server keeps its log in files of this size. */
const LEAST_WAL_BYTES = 16 * 1_024 * 1_024
const LONGEST_POLL_MS = 86_400_000
/** As far as a date is written with four digits for its year. */
const LAST_YEAR = 9_999

/** What is wrong with a subscription of this catalogue, all of it. */
export function subscriptionProblems(
  catalogue: Catalogue,
  name: unknown,
  options: unknown,
): readonly string[] {
  return [...declarationProblems(name, options), ...coverageProblems(catalogue, options)]
}

/** What is wrong with a subscription as it is declared, whatever the catalogue. */
export function declarationProblems(name: unknown, options: unknown): readonly string[] {
  if (!isRecord(options)) return [recordProblem('the options', options)].filter((problem) => problem !== null)
  const strangers = unknownOptionProblems(options, OPTION_NAMES, KNOWN_ELSEWHERE)
  if (!isRecord(options['on'])) return ['on must be an object of handlers by event name', ...strangers]
  return [
    subscriptionNameProblem(name),
    ...dispatcherProblems({ ...options, handlers: options['on'] }),
    ...strangers,
    ...sharedProblems(options),
  ].filter((problem) => problem !== null)
}

/** What is wrong with a relay, all of it. */
export function relayProblems(name: unknown, options: unknown): readonly string[] {
  if (!isRecord(options)) return [recordProblem('the options', options)].filter((problem) => problem !== null)
  const { via } = options
  return [
    subscriptionNameProblem(name),
    typeof property(via, 'open') === 'function'
      ? null
      : `via must be a transport, such as kafka({ producer }), but is ${shown(via)}`,
    ...unknownOptionProblems(options, RELAY_OPTION_NAMES, { ...KNOWN_ELSEWHERE, ...NOT_OF_RELAYS }),
    ...sharedProblems(options),
  ].filter((problem) => problem !== null)
}

/** What every subscription has, whether it has handlers or a transport. */
function sharedProblems(options: GivenOptions): readonly (string | null)[] {
  const { retry: backoff, maxAttempts } = options
  return [
    ...retryProblems({ backoff, maxAttempts }),
    ...numberProblems(options),
    ...switchProblems(options),
    ...orderProblems(options),
    ...engineProblems(options),
    ...redrivePolicyProblems(options['redrive']),
  ]
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

/** What keeps a text from being the name of a subscription, as a sentence; null if nothing does. */
export function subscriptionNameProblem(name: unknown): string | null {
  if (typeof name === 'string' && NAME.test(name)) return null
  return `the name must be 1 to 100 letters, digits, dots, dashes or underscores, but is ${shown(name)}`
}

const OPTION_NAMES: readonly (keyof SubscriptionOptions<Catalogue, unknown>)[] = [
  'on',
  'streams',
  'startFrom',
  'engine',
  'walBudgetBytes',
  'order',
  'onDead',
  'oneAtATime',
  'lanes',
  'maxAttempts',
  'retry',
  'classify',
  'redrive',
  'timeoutMs',
  'concurrency',
  'batchSize',
  'pollMs',
  'pollMinMs',
  'drain',
  'middleware',
]

const RELAY_OPTION_NAMES: readonly string[] = [
  'via',
  ...OPTION_NAMES.filter((name) => !OF_HANDLERS.some((other) => other === name)),
]

const NOT_OF_RELAYS: Readonly<Record<string, string>> = Object.fromEntries(
  OF_HANDLERS.map((name) => [name, 'it is for handlers, which a relay has none of']),
)

/** What other libraries call things that are here. */
const KNOWN_ELSEWHERE: Readonly<Record<string, string>> = {
  maxRetries: 'use maxAttempts, which counts the first attempt too',
  retries: 'use maxAttempts, which counts the first attempt too',
  retryLimit: 'use maxAttempts, which counts the first attempt too',
  attempts: 'use maxAttempts',
  backoff: 'use retry',
  retryDelay: 'use retry: fixed(…)',
  handlers: 'use on',
  events: 'use on, which takes the events it has handlers for',
  topics: 'use streams',
  pollInterval: 'use pollMs',
  parallelism: 'use concurrency',
  ordered: "use order: 'aggregate'",
}

function numberProblems(options: GivenOptions): readonly (string | null)[] {
  return [
    wholeNumberProblem('concurrency', options['concurrency'], 1, MOST_AT_ONCE),
    wholeNumberProblem('batchSize', options['batchSize'], 1, MOST_AT_ONCE),
    wholeNumberProblem('pollMs', options['pollMs'], 1, LONGEST_POLL_MS),
    wholeNumberProblem('pollMinMs', options['pollMinMs'], 1, LONGEST_POLL_MS),
    wholeNumberProblem('lanes', options['lanes'], 1, MOST_LANES),
  ]
}

function switchProblems(options: GivenOptions): readonly (string | null)[] {
  return [
    booleanProblem('drain', options['drain']),
    booleanProblem('oneAtATime', options['oneAtATime']),
    functionProblem('classify', options['classify']),
  ]
}

function orderProblems(options: GivenOptions): readonly (string | null)[] {
  return [
    oneOfProblem('order', options['order'], ['none', 'aggregate', 'total']),
    oneOfProblem('onDead', options['onDead'], ['block', 'continue']),
    patternListProblem('streams', options['streams']),
    startFromProblem(options['startFrom']),
    ...contradictions(options),
  ]
}

/** Options that are fine by themselves but not together. */
function contradictions(options: GivenOptions): readonly string[] {
  const { order = 'none', lanes, concurrency = 1, onDead } = options
  const oneAtATime = options['oneAtATime'] === true
  const isUnordered = order === 'none' && !oneAtATime
  const splits = lanes !== undefined && lanes !== 1
  const rules: readonly (readonly [boolean, string])[] = [
    [oneAtATime && options['order'] === 'none', "oneAtATime needs an order: leave it out, or 'aggregate'"],
    [oneAtATime && splits, 'oneAtATime means lanes 1: leave lanes out'],
    [oneAtATime && concurrency !== 1, 'oneAtATime means concurrency 1: leave it out'],
    [isUnordered && lanes !== undefined, "lanes are for ordered subscriptions: add order 'aggregate'"],
    [isUnordered && onDead !== undefined, "onDead is for ordered subscriptions: add order 'aggregate'"],
    [order === 'total' && splits, "order 'total' means lanes 1: leave lanes out"],
  ]
  return rules.filter(([isBroken]) => isBroken).map(([, problem]) => problem)
}

function engineProblems({ engine, walBudgetBytes }: GivenOptions): readonly (string | null)[] {
  return [
    oneOfProblem('engine', engine, ['queue', 'stream']),
    wholeNumberProblem('walBudgetBytes', walBudgetBytes, LEAST_WAL_BYTES, Number.MAX_SAFE_INTEGER),
    walBudgetBytes !== undefined && engine !== 'stream'
      ? "walBudgetBytes is for the log stream: add engine 'stream'"
      : null,
  ]
}

function startFromProblem(startFrom: unknown): string | null {
  if (startFrom === undefined || startFrom === 'now' || startFrom === 'beginning') return null
  const isDate = startFrom instanceof Date && !Number.isNaN(startFrom.getTime())
  if (!isDate) return "startFrom must be 'now', 'beginning' or a valid Date"
  const year = startFrom.getUTCFullYear()
  return year >= 1 && year <= LAST_YEAR ? null : `startFrom must be a Date of the years 1 to ${LAST_YEAR}`
}

/** Handlers for events that do not exist, and events of the given streams that have none. */
function coverageProblems(catalogue: Catalogue, options: unknown): readonly string[] {
  const on = property(options, 'on')
  const streams = property(options, 'streams')
  if (!isRecord(on)) return []
  const names = Object.keys(on).filter((name) => name !== CATCH_ALL)
  const unknown = names
    .filter((name) => catalogue.find(name) === undefined)
    .map(
      (name) =>
        `there is a handler for ${shown(name)}, which is not in the catalogue${near(catalogue, name)}`,
    )
  if (Object.hasOwn(on, CATCH_ALL) || patternListProblem('streams', streams) !== null) return unknown
  const matchers = ((streams ?? []) as readonly string[]).map(patternMatcher)
  const missing = catalogue.events
    .filter(({ name, stream }) => matchers.some((matches) => matches(stream)) && !names.includes(name))
    .map(({ name }) => name)
  if (missing.length === 0) return unknown
  return [
    ...unknown,
    `streams bring events without a handler: ${missing.join(', ')}. Add them, or '*' for all others`,
  ]
}

/** The event that was probably meant. Handlers go by the name in code, which `storedAs` may hide. */
function near(catalogue: Catalogue, name: string): string {
  const stored = catalogue.findStored(name)
  if (stored !== undefined) return `: in code it is called "${stored.name}"`
  const suggestion = suggest(
    name,
    catalogue.events.map((event) => event.name),
  )
  return suggestion === null ? '' : `; did you mean "${suggestion}"?`
}
