import { explanationOf } from './faults.ts'
import { groupBy } from './group-by.ts'
import { type History, pairOf, type Run } from './history.ts'

/** Two runs of which one should have made the other needless, or impossible at that time. */
export interface Repetition {
  readonly eventId: string
  readonly subscription: string
  readonly text: string
  /** The fault that explains it; null if none does, which is a failure. */
  readonly fault: string | null
}

/** Runs of an event for a subscription after one that was done, or of which nobody heard the end. Retries are none. */
export function duplicates(history: History, leaseMs: number): Repetition[] {
  const pairs = groupBy(history.runs, ({ subscription, eventId }) => pairOf(subscription, eventId))
  return [...pairs.values()].flatMap((runs) =>
    runs.slice(1).flatMap((run, n) => {
      // The first n + 1 runs came before this one; if all of them failed, it is a retry.
      const earlier = runs
        .slice(0, n + 1)
        .filter(({ outcome, until }) => outcome !== 'failed' || until > run.from)
      const [first] = earlier
      return first === undefined ? [] : [repetition(history, earlier, run, leaseMs)]
    }),
  )
}

function repetition(history: History, earlier: readonly Run[], run: Run, leaseMs: number): Repetition {
  // Each of the earlier ones must have lost its lease.
  const explanations = earlier.map((before) => explanationOf(history, before, run.from, leaseMs))
  const before = earlier[Math.max(0, explanations.indexOf(null))] as Run
  return {
    eventId: run.eventId,
    subscription: run.subscription,
    text: `run ${run.run} (${run.worker}) repeats ${before.run} (${before.worker}, ${before.outcome})`,
    fault: explanations.includes(null) ? null : (explanations.at(-1)?.id ?? null),
  }
}

/** Two at once where there should be one: of a whole subscription, or of a key. */
export function overlaps(history: History, leaseMs: number): Repetition[] {
  return [...history.subscriptions.values()].flatMap(({ name, ordered, oneAtATime }) => {
    if (!ordered && !oneAtATime) return []
    const runs = history.runs.filter(({ subscription }) => subscription === name)
    const groups = oneAtATime ? [runs] : [...groupBy(runs, ({ key }) => key).values()]
    return groups.flatMap((group) => overlapsOf(history, group, leaseMs))
  })
}

function overlapsOf(history: History, runs: readonly Run[], leaseMs: number): Repetition[] {
  let open: Run[] = []
  return runs.flatMap((run) => {
    open = open.filter(({ until }) => until > run.from)
    const found = open.map((before) => ({
      eventId: run.eventId,
      subscription: run.subscription,
      text: `run ${run.run} (${run.worker}) beside ${before.run} of ${before.eventId} (${before.worker})`,
      fault: explanationOf(history, before, run.from, leaseMs)?.id ?? null,
    }))
    open.push(run)
    return found
  })
}
