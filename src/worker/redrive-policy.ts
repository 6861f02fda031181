import { isFailureCode } from '../delivery/failure.ts'
import { type Duration, durationProblem, parseDuration } from '../runtime/duration.ts'
import {
  isRecord,
  recordProblem,
  shown,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import type { PolicyRedrive } from '../store/redrive-store.ts'

/** Which dead letters of a subscription are re-driven without a person: off unless a policy is named. */
export interface RedrivePolicy {
  /** Its name: the acts are recorded as `policy:<name>`. */
  readonly name: string
  /**
   * Error codes, as dead letters have them; `*` at the end stands for a class of them: `HTTP_5*`. An error that has neither
   * `failureCode` nor `code` goes by its class in upper case: `PAYMENT_ERROR` for a `PaymentError`.
   */
  readonly codes: readonly string[]
  /** How long after it died. */
  readonly after: Duration
  /**
   * Each next time waits so many times as long, 1 to 100.
   * @default 2
   */
  readonly factor?: number
  /**
   * How often for one event of the subscription, 1 to 100; then it is left to a person.
   * @default 3
   */
  readonly atMost?: number
}

const DEFAULT_FACTOR = 2
const DEFAULT_AT_MOST = 3
const MOST = 100
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

const OPTION_NAMES: readonly (keyof RedrivePolicy)[] = ['name', 'codes', 'after', 'factor', 'atMost']

/** Those that a person made dead letters of: only a person undoes it. */
const DECIDED: readonly string[] = ['MOVED_ASIDE', 'SUBSCRIPTION_RETIRED']

/** Fills in the defaults. The caller has seen to it that there are no problems. */
export function resolveRedrivePolicy(policy: RedrivePolicy | undefined): PolicyRedrive | null {
  if (policy === undefined) return null
  const { name, codes, after, factor = DEFAULT_FACTOR, atMost = DEFAULT_AT_MOST } = policy
  return { name, codes, afterMs: parseDuration(after, 'redrive.after'), factor, atMost }
}

/** What is wrong with the policy of a subscription, all of it. */
export function redrivePolicyProblems(policy: unknown): readonly (string | null)[] {
  if (policy === undefined) return []
  if (!isRecord(policy)) return [recordProblem('redrive', policy)]
  const { name, codes, after, factor } = policy
  const isNamed = typeof name === 'string' && NAME.test(name)
  const isFactor = factor === undefined || (typeof factor === 'number' && factor >= 1 && factor <= MOST)
  const afterProblem = durationProblem(after)
  return [
    ...unknownOptionProblems(policy, OPTION_NAMES).map((problem) => `redrive: ${problem}`),
    isNamed
      ? null
      : `redrive.name must be 1 to 100 letters, digits, dots, dashes or underscores, but is ${shown(name)}`,
    codesProblem(codes),
    afterProblem === null ? null : `redrive.after ${afterProblem}`,
    isFactor ? null : `redrive.factor must be a number from 1 to ${MOST}, but is ${shown(factor)}`,
    wholeNumberProblem('redrive.atMost', policy['atMost'], 1, MOST),
  ]
}

function codesProblem(codes: unknown): string | null {
  if (!Array.isArray(codes) || codes.length === 0) {
    return `redrive.codes must be a list of at least one error code, but is ${shown(codes)}`
  }
  const stranger: unknown = codes.find((code) => !isCode(code))
  if (stranger !== undefined || codes.includes(undefined)) {
    return `redrive.codes must be error codes such as 'ECONNREFUSED' or 'HTTP_5*', but one is ${shown(stranger)}`
  }
  const decided = DECIDED.filter((code) => codes.some((named) => stands(String(named), code)))
  return decided.length === 0
    ? null
    : `redrive.codes: ${decided.join(', ')} is what a person decided, which no policy undoes`
}

/** Whether what a policy names stands for the code, by itself or as one of a class. */
function stands(named: string, code: string): boolean {
  return named.endsWith('*') ? code.startsWith(named.slice(0, -1)) : named === code
}

function isCode(code: unknown): boolean {
  return typeof code === 'string' && isFailureCode(code.endsWith('*') ? code.slice(0, -1) : code)
}
