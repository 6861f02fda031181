import {
  isRecord,
  recordProblem,
  refuseProblems,
  shown,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import type { DoctorLimits } from '../store/doctor-facts.ts'

/** What `doctor` goes by. */
export interface DoctorOptions extends Partial<DoctorLimits> {
  /**
   * The types of events that are known, as they stand in the table.
   * @default those of the outbox's catalogue
   */
  readonly eventTypes?: readonly string[]
}

const OPTION_NAMES: readonly (keyof DoctorOptions)[] = [
  'deadTuples',
  'bloatBytes',
  'transactionSeconds',
  'slotTransactions',
  'clockSkewMs',
  'leaseSeconds',
  'eventTypes',
]

const DEFAULT_LIMITS: DoctorLimits = {
  deadTuples: 100_000,
  bloatBytes: 268_435_456,
  transactionSeconds: 300,
  slotTransactions: 1_000_000,
  clockSkewMs: 1_000,
  leaseSeconds: 60,
}

/** The limits with their defaults. @throws InvalidOptionsError with all problems. */
export function doctorLimits(options: DoctorOptions): DoctorLimits {
  refuseProblems('doctor', doctorProblems(options))
  const { eventTypes: _, ...limits } = options
  return { ...DEFAULT_LIMITS, ...withoutUndefined(limits) }
}

function withoutUndefined(limits: Partial<DoctorLimits>): Partial<DoctorLimits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined))
}

function doctorProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  const { eventTypes } = options
  const isList =
    Array.isArray(eventTypes) && (eventTypes as unknown[]).every((type) => typeof type === 'string')
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    ...Object.keys(DEFAULT_LIMITS).map((name) =>
      wholeNumberProblem(name, options[name], 0, Number.MAX_SAFE_INTEGER),
    ),
    eventTypes === undefined || isList
      ? null
      : `eventTypes must be a list of stored types, but is ${shown(eventTypes)}`,
  ]
}
