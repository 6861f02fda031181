import { type Duration, durationProblem, LONGEST_AGE, parseDuration } from '../runtime/duration.ts'
import { actProblems, type OperatorAct } from '../runtime/operator-act.ts'
import {
  booleanProblem,
  functionProblem,
  isRecord,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { unstorableText } from '../runtime/unstorable-text.ts'
import type { ExportBound } from '../store/export-store.ts'

/** How far an export is. */
export interface ExportProgress {
  /** Written so far. */
  readonly events: number
  /** How many there are to write; a few more may come. */
  readonly of: number
  readonly files: number
}

/** What is exported, to where, and by whom. */
export interface ExportRunOptions extends OperatorAct {
  readonly stream: string
  /** An existing directory. Each export makes a new one in it. */
  readonly directory: string
  /**
   * Only events that were published before this time.
   * @default all that are there
   */
  readonly until?: Date
  /**
   * Only events that were published longer ago than this, by the database's clock: `'7d'`. In the place of `until`.
   * @default all that are there
   */
  readonly olderThan?: Duration
  /**
   * The most events of one file.
   * @default 100_000
   */
  readonly maxFileEvents?: number
  /**
   * True writes also what the catalogue calls sensitive, for a trail that must be full. It is recorded with the act.
   * @default false, unless the outbox keeps it (`sensitive: { export: 'keep' }`)
   */
  readonly reveal?: boolean
  /**
   * How long to wait for transactions that were open when the export began, in milliseconds: before they have ended
   * nobody can tell whether all events are there.
   * @default 30_000
   */
  readonly waitMs?: number
  /** Breaks it off: nothing is recorded, and what was written is removed. */
  readonly signal?: AbortSignal
  /** Told after every file, and while files are written. */
  readonly onProgress?: (progress: ExportProgress) => void
}

/** The same, checked and with every default filled in. */
export interface ExportRequest {
  readonly stream: string
  readonly directory: string
  readonly bound: ExportBound
  readonly maxFileEvents: number
  readonly reveal: boolean
  readonly waitMs: number
  readonly signal: AbortSignal | undefined
  readonly operator: string
  readonly note: string | null
  onProgress(progress: ExportProgress): void
}

const DEFAULT_FILE_EVENTS = 100_000
const MOST_FILE_EVENTS = 500_000
const DEFAULT_WAIT_MS = 30_000
const LONGEST_WAIT_MS = 86_400_000

const OPTION_NAMES: readonly (keyof ExportRunOptions)[] = [
  'stream',
  'directory',
  'until',
  'olderThan',
  'maxFileEvents',
  'reveal',
  'waitMs',
  'signal',
  'onProgress',
  'operator',
  'note',
]

/** Checks the options. @throws InvalidOptionsError with everything that is wrong with them. */
export function exportRequest(options: ExportRunOptions): ExportRequest {
  refuseProblems('an export', exportProblems(options))
  const { stream, directory, reveal = false, signal, onProgress, operator, note = null } = options
  return {
    stream,
    directory,
    bound: boundOf(options),
    maxFileEvents: options.maxFileEvents ?? DEFAULT_FILE_EVENTS,
    reveal,
    waitMs: options.waitMs ?? DEFAULT_WAIT_MS,
    signal,
    operator,
    note,
    onProgress: (progress) => onProgress?.(progress),
  }
}

function boundOf({ until, olderThan }: ExportRunOptions): ExportBound {
  if (until !== undefined) return { kind: 'until', time: until }
  if (olderThan !== undefined) return { kind: 'older-than', ageMs: parseDuration(olderThan, 'olderThan') }
  return { kind: 'all' }
}

function exportProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  const { until, olderThan, signal } = options
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    streamProblem(options['stream'] ?? null),
    textProblem('directory', options['directory'] ?? null),
    until === undefined || (until instanceof Date && !Number.isNaN(until.getTime()))
      ? null
      : `until must be a Date, but is ${shown(until)}`,
    ageProblem(olderThan),
    until !== undefined && olderThan !== undefined ? 'give until or olderThan, not both' : null,
    wholeNumberProblem('maxFileEvents', options['maxFileEvents'], 1, MOST_FILE_EVENTS),
    wholeNumberProblem('waitMs', options['waitMs'], 0, LONGEST_WAIT_MS),
    booleanProblem('reveal', options['reveal']),
    signal === undefined || signal instanceof AbortSignal
      ? null
      : `signal must be an AbortSignal, but is ${shown(signal)}`,
    functionProblem('onProgress', options['onProgress']),
    ...actProblems({ operator: options['operator'], ...noteOf(options) }),
  ]
}

function noteOf({ note }: Readonly<Record<string, unknown>>): object {
  return note === undefined ? {} : { note }
}

/** What is wrong with the name of a stream. */
export function streamProblem(stream: unknown): string | null {
  const unstorable = typeof stream === 'string' ? unstorableText(stream) : null
  return unstorable === null ? textProblem('stream', stream) : `stream ${unstorable}`
}

function ageProblem(olderThan: unknown): string | null {
  if (olderThan === undefined) return null
  const problem = durationProblem(olderThan)
  if (problem !== null) return `olderThan ${problem}`
  return parseDuration(olderThan as Duration) > parseDuration(LONGEST_AGE)
    ? 'olderThan must be at most 100 years'
    : null
}
