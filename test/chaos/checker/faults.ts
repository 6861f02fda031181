import type { FaultEntry } from './entry.ts'
import { groupBy } from './group-by.ts'
import type { History, Run } from './history.ts'

/**
 * The fault that can have cost a run its lease, or the writing down of its result: it touched the run's worker between
 * one lease before the run's beginning, since a lease that was not extended then lapses later, and one lease after its
 * end, by when a result is written or given up.
 */
export function explanationOf(
  { faults }: Pick<History, 'faults'>,
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

/**
 * How many runs could have been repeated, or have had another one beside them, with a fault to explain it. Of those alone a
 * history cannot tell whether anything is repeated without need.
 */
export function excused({ runs, faults }: History, leaseMs: number): number {
  return [...groupBy(runs, ({ worker }) => worker)].reduce((sum, [worker, ofWorker]) => {
    const from = (ofWorker[0]?.from ?? 0) - leaseMs
    const until = Math.max(...ofWorker.map((run) => run.until)) + leaseMs
    const near = faults.filter(
      (fault) =>
        (fault.workers === null || fault.workers.includes(worker)) &&
        fault.at <= until &&
        fault.until >= from,
    )
    const history = { faults: near }
    const isExcused = (run: Run): boolean =>
      explanationOf(history, run, Number.POSITIVE_INFINITY, leaseMs) !== null
    return sum + ofWorker.filter(isExcused).length
  }, 0)
}
