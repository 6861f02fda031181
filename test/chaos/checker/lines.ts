import type { Entry, Identity, Outcome } from './entry.ts'
import { type Anomalies, countAnomalies, judge, type Verdict } from './judge.ts'

/** The lease of all histories made here. */
export const LEASE_MS: number = 1_000

/** An event by its name. */
export function event(eventId: string, key = 'k'): Identity {
  return { eventId, type: 'Stepped', key, digest: `digest of ${eventId}` }
}

/** A subscription to everything, unless told otherwise. */
export function subscribed(more: Partial<Extract<Entry, { kind: 'subscribed' }>> = {}): Entry {
  return {
    kind: 'subscribed',
    at: 0,
    subscription: 's',
    order: 'none',
    oneAtATime: false,
    types: null,
    ...more,
  }
}

/** A transaction with these events, and what its publisher was told; null for nothing. */
export function published(
  at: number,
  events: readonly Identity[],
  outcome: Outcome | null = 'committed',
): Entry[] {
  const transaction = `t${at}`
  const lines: Entry[] = [
    { kind: 'begun', at, transaction, publisher: 'p', events },
    { kind: 'committing', at: at + 1, transaction },
  ]
  return outcome === null ? lines : [...lines, { kind: 'concluded', at: at + 2, transaction, outcome }]
}

/** How a run differs from the plainest one. */
export interface RunOptions {
  readonly worker?: string
  readonly sequence?: number | null
  readonly until?: number | null
  readonly outcome?: 'done' | 'failed'
  readonly subscription?: string
}

/** One run of a handler, 5 ms long, unless told otherwise; `until: null` is one of which nobody heard the end. */
export function run(at: number, identity: Identity, options: RunOptions = {}): Entry[] {
  const { worker = 'w', sequence = null, until = at + 5, outcome = 'done', subscription = 's' } = options
  const name = `${subscription}-${at}-${worker}`
  const seen: Entry = { kind: 'seen', at, run: name, worker, subscription, attempt: 1, sequence, ...identity }
  return until === null ? [seen] : [seen, { kind: 'finished', at: until, run: name, outcome }]
}

/** Something that was broken. */
export function fault(at: number, until: number, workers: readonly string[] | null, name = 'kill'): Entry {
  return { kind: 'fault', at, until, id: `${name}@${at}`, name, workers }
}

/** The anomalies of a history that are not zero. */
export function anomaliesOf(
  ...parts: readonly (Entry | readonly Entry[])[]
): Partial<Record<keyof Anomalies, number>> {
  return nonZero(judge(parts.flat(), { leaseMs: LEASE_MS }))
}

function nonZero(verdict: Verdict): Partial<Record<keyof Anomalies, number>> {
  return Object.fromEntries(Object.entries(countAnomalies(verdict)).filter(([, count]) => count > 0))
}
