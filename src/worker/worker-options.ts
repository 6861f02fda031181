import { type AlertOptions, alertProblems } from '../alert/alert-options.ts'
import { LOGGER_METHODS, type Logger } from '../observe/logger.ts'
import type { Observer } from '../observe/worker-events.ts'
import {
  booleanProblem,
  functionListProblem,
  methodsProblem,
  oneOfProblem,
  recordProblem,
  storedNameProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'

/** How a worker goes about its work. */
export interface WorkerOptions {
  /**
   * How long a lease lasts, in milliseconds. Heartbeats extend it three times in that time, so it does not limit
   * handlers; it is how long the work of a worker that vanished lies idle.
   * @default 30_000
   */
  readonly leaseMs?: number
  /**
   * How long `stop` waits for running handlers before it aborts their signals, in milliseconds.
   * @default 30_000
   */
  readonly drainMs?: number
  /**
   * What to do with events that no subscription takes: report them, or keep a dead letter of each as well.
   * @default 'report'
   */
  readonly unmatched?: 'report' | 'dead-letter'
  /**
   * Told of everything the worker does.
   * @default nobody
   */
  readonly observers?: readonly Observer[]
  /**
   * Gets a line for everything the worker does, and is behind `ctx.log`.
   * @default the outbox's
   */
  readonly logger?: Logger
  /**
   * This worker's name in the tables and logs. No two that run at the same time may share one.
   * @default host, process and a random tail
   */
  readonly workerId?: string
  /**
   * How often to look for what vanished workers left, in milliseconds.
   * @default 1_000
   */
  readonly housekeepingMs?: number
  /**
   * True lets the database wake the worker, where it can; false leaves it to polling and `outbox.wake()`.
   * @default true
   */
  readonly listen?: boolean
  /**
   * True stops the worker on SIGTERM and SIGINT, and ends the process at once on the second one.
   * @default false
   */
  readonly handleSignals?: boolean
  /**
   * What people are told of, and how. Of all workers one tells at a time: give them all the same. False tells nobody.
   * @default the default rules, to the log, where there is one
   */
  readonly alerts?: AlertOptions | false
}

/** Worker options with every default filled in. */
export interface ResolvedWorkerOptions {
  readonly leaseMs: number
  readonly marginMs: number
  readonly drainMs: number
  readonly unmatched: 'report' | 'dead-letter'
  readonly observers: readonly Observer[]
  readonly workerId: string | null
  readonly housekeepingMs: number
  readonly listen: boolean
  readonly handleSignals: boolean
  /** Null where nothing was said. */
  readonly alerts: AlertOptions | false | null
}

const SHORTEST_LEASE_MS = 100
const LONGEST_LEASE_MS = 3_600_000
/** The longest a stop may be told to wait. */
export const LONGEST_DRAIN_MS = 86_400_000
const LONGEST_WORKER_ID = 200
/** The share of a lease that is not used: for statements under way and clocks that drift. */
const MARGIN = 0.1

const OPTION_NAMES: readonly (keyof WorkerOptions)[] = [
  'leaseMs',
  'drainMs',
  'unmatched',
  'observers',
  'logger',
  'workerId',
  'housekeepingMs',
  'listen',
  'handleSignals',
  'alerts',
]

/** What is wrong with a worker's options, all of it. */
export function workerProblems(options: WorkerOptions): readonly string[] {
  const problem = recordProblem('the options', options)
  if (problem !== null) return [problem]
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    wholeNumberProblem('leaseMs', options.leaseMs, SHORTEST_LEASE_MS, LONGEST_LEASE_MS),
    wholeNumberProblem('drainMs', options.drainMs, 0, LONGEST_DRAIN_MS),
    wholeNumberProblem('housekeepingMs', options.housekeepingMs, 10, LONGEST_LEASE_MS),
    oneOfProblem('unmatched', options.unmatched, ['report', 'dead-letter']),
    storedNameProblem('workerId', options.workerId, LONGEST_WORKER_ID),
    functionListProblem('observers', options.observers),
    methodsProblem('logger', options.logger, LOGGER_METHODS),
    booleanProblem('listen', options.listen),
    booleanProblem('handleSignals', options.handleSignals),
    ...(options.alerts === undefined || options.alerts === false ? [] : alertProblems(options.alerts)),
  ].filter((each) => each !== null)
}

/** Fills in the defaults. The caller has seen to it that there are no problems. */
export function resolveWorkerOptions(options: WorkerOptions): ResolvedWorkerOptions {
  const leaseMs = options.leaseMs ?? 30_000
  return {
    leaseMs,
    marginMs: leaseMs * MARGIN,
    drainMs: options.drainMs ?? 30_000,
    unmatched: options.unmatched ?? 'report',
    observers: options.observers ?? [],
    workerId: options.workerId ?? null,
    housekeepingMs: options.housekeepingMs ?? 1_000,
    listen: options.listen ?? true,
    handleSignals: options.handleSignals ?? false,
    alerts: options.alerts ?? null,
  }
}
