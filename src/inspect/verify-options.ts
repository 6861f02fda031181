import {
  isRecord,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { EARLIEST_TIME_MS, LATEST_TIME_MS } from '../runtime/time-bounds.ts'
import type { VerifyRequest } from '../store/proof-store.ts'

/** Which part of the outbox to verify. */
export interface VerifyOptions {
  /**
   * From the first event published at or after this time.
   * @default the oldest event there is
   */
  readonly since?: Date
  /**
   * Up to the last event published before this time.
   * @default the newest event there is
   */
  readonly until?: Date
  /**
   * One subscription by its name.
   * @default all of them, retired ones too
   */
  readonly subscription?: string
  /**
   * At most so many ids of each kind and subscription are named, 0 to 10,000. Counts are always whole.
   * @default 20
   */
  readonly limit?: number
}

const OPTION_NAMES: readonly (keyof VerifyOptions)[] = ['since', 'until', 'subscription', 'limit']
const DEFAULT_LIMIT = 20
const MOST = 10_000

/** The options with their defaults. @throws InvalidOptionsError with all their problems. */
export function verifyRequest(options: VerifyOptions): VerifyRequest {
  refuseProblems('verify', verifyProblems(options))
  const { since = null, until = null, subscription = null, limit: most = DEFAULT_LIMIT } = options
  return { since, until, subscription, most }
}

function verifyProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  const { since, until, subscription, limit } = options
  const isReversed = since instanceof Date && until instanceof Date && since.getTime() >= until.getTime()
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    timeProblem('since', since),
    timeProblem('until', until),
    isReversed ? 'until must be later than since' : null,
    typeof subscription === 'string' && subscription.includes('\0')
      ? 'subscription must not contain a NUL character'
      : textProblem('subscription', subscription),
    wholeNumberProblem('limit', limit, 0, MOST),
  ]
}

function timeProblem(name: string, value: unknown): string | null {
  if (value === undefined) return null
  const isFine =
    value instanceof Date && value.getTime() >= EARLIEST_TIME_MS && value.getTime() <= LATEST_TIME_MS
  return isFine ? null : `${name} must be a Date of the years 1970 to 9998, but is ${shown(value)}`
}
