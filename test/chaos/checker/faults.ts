import type { FaultEntry } from './entry.ts'
import type { History, Run } from './history.ts'

/**
 * The fault that can have cost a run its lease, or the writing down of its result: it touched the run's worker between
 * one lease before the run's beginning, since a lease that was not extended then lapses later, and one lease after its
 * end, by when a result is written or given up.
 */
export function explanationOf(
  { faults }: History,
  run: Run,
  repeatedAt: number,
  leaseMs: number,
): FaultEntry | null {
  const end = Math.min(run.until, repeatedAt)
  const touched = ({ at, until, workers }: FaultEntry): boolean =>
    (workers === null || workers.includes(run.worker)) &&
    at <= Math.min(end + leaseMs, repeatedAt) &&
    until + leaseMs >= run.from
  return faults.find(touched) ?? null
}
