import { type Duration, durationProblem, parseDuration } from '../runtime/duration.ts'
import {
  isRecord,
  recordProblem,
  refuseProblems,
  shown,
  unknownOptionProblems,
} from '../runtime/option-checks.ts'
import { jittered } from '../runtime/periodic.ts'
import type { Random } from '../runtime/random.ts'

/** How long to wait before the next attempt. Anything of this shape will do. */
export interface Backoff {
  /** The pause in milliseconds after the given number of failed attempts, 1 or more. */
  delayMs(failedAttempts: number, random: Random): number
}

/**
 * How far chance moves a delay, so that deliveries that failed together do not return together: 0.2 means up to
 * 20 % shorter or longer, 'full' anywhere from nothing to the whole delay, 0 not at all.
 */
export type Jitter = number | 'full'

/** Options of `exponential`. */
export interface ExponentialOptions {
  /** The delay after the first failure. */
  readonly base: Duration
  /**
   * What each further failure multiplies the delay by.
   * @default 2
   */
  readonly factor?: number
  /** The longest delay, before jitter. */
  readonly cap: Duration
  /** @default 0.2 */
  readonly jitter?: Jitter
}

/** Options of `fixed` and `schedule`. */
export interface JitterOptions {
  /** @default 0 */
  readonly jitter?: Jitter
}

/** Delays that grow by a factor up to a cap: 1 s, 2 s, 4 s … 300 s. */
export function exponential(options: ExponentialOptions): Backoff {
  refuseProblems('exponential backoff', [recordProblem('the argument', options)])
  const { base, factor = 2, cap, jitter = 0.2 } = options
  refuseProblems('exponential backoff', [
    ...unknownOptionProblems(options, ['base', 'factor', 'cap', 'jitter']),
    ...durationProblems('base', base),
    ...durationProblems('cap', cap),
    ...(Number.isFinite(factor) && factor >= 1 ? [] : [`factor must be 1 or more, but is ${shown(factor)}`]),
    ...jitterProblems(jitter),
  ])
  const baseMs = parseDuration(base)
  const capMs = parseDuration(cap)
  refuseProblems('exponential backoff', [
    ...(baseMs > 0 ? [] : ['base must be more than 0']),
    ...(capMs >= baseMs ? [] : [`cap (${capMs} ms) must not be shorter than base (${baseMs} ms)`]),
  ])
  return {
    delayMs: (failedAttempts, random) =>
      spread(Math.min(capMs, baseMs * factor ** (Math.max(1, failedAttempts) - 1)), jitter, random),
  }
}

/** Delays from a list, the last of which repeats: `schedule('1m', '5m', '15m', '1h')`. Options may come last. */
export function schedule(...delays: readonly [Duration, ...(Duration | JitterOptions)[]]): Backoff {
  const last = delays.at(-1)
  const options: JitterOptions = isOptions(last) ? last : {}
  const jitter = options.jitter ?? 0
  const listed = delays.filter((delay): delay is Duration => !isOptions(delay))
  refuseProblems('backoff schedule', [
    ...unknownOptionProblems(options, ['jitter']),
    ...(listed.length === 0 ? ['there must be at least one delay'] : []),
    ...(delays.slice(0, -1).some(isOptions) ? ['options must come last'] : []),
    ...listed.flatMap((delay, index) => durationProblems(`delay ${index + 1}`, delay)),
    ...jitterProblems(jitter),
  ])
  const delaysMs = listed.map((delay) => parseDuration(delay))
  return {
    delayMs: (failedAttempts, random) =>
      spread(delaysMs[Math.min(Math.max(1, failedAttempts), delaysMs.length) - 1] as number, jitter, random),
  }
}

// By shape: what is neither a length of time nor options is refused as a length of time.
function isOptions(value: Duration | JitterOptions | undefined): value is JitterOptions {
  return isRecord(value)
}

/** The same delay every time: `fixed('5s')`. */
export function fixed(delay: Duration, options: JitterOptions = {}): Backoff {
  return schedule(delay, options)
}

function spread(delayMs: number, jitter: Jitter, random: Random): number {
  return Math.round(jitter === 'full' ? delayMs * random() : jittered(delayMs, jitter, random))
}

function durationProblems(name: string, value: unknown): string[] {
  const problem = durationProblem(value)
  return problem === null ? [] : [`${name} ${problem}`]
}

function jitterProblems(jitter: unknown): string[] {
  if (jitter === 'full' || (typeof jitter === 'number' && jitter >= 0 && jitter <= 1)) return []
  return [`jitter must be from 0 to 1, or 'full', but is ${shown(jitter)}`]
}
