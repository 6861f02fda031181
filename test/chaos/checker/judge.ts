import { changed, early, phantoms, undelivered } from './delivery.ts'
import type { Entry, Finding } from './entry.ts'
import { excused } from './faults.ts'
import { type History, readHistory } from './history.ts'
import { orderOf } from './order.ts'
import { type Recovery, recoveries } from './recovery.ts'
import { duplicates, overlaps, type Repetition } from './repetition.ts'

/** By what a history is judged. */
export interface Rules {
  /** How long a lease of the workers lasts. */
  readonly leaseMs: number
  /**
   * How long deliveries may take after a fault; null only reports it.
   * @default null
   */
  readonly recoveryBarMs?: number | null
}

/** Everything that must not be, by name. */
export interface Anomalies {
  /** Committed, never handled to a good end, and not known to the outbox any more. */
  readonly lost: readonly Finding[]
  /** Committed, never handled to a good end or not written down, and still waiting after the quiet. */
  readonly stuck: readonly Finding[]
  /** Handled, and never committed. */
  readonly phantom: readonly Finding[]
  /** Handled before it could have been committed. */
  readonly early: readonly Finding[]
  /** Not the same to a handler as to its publisher. */
  readonly identity: readonly Finding[]
  /** Before an earlier one of its key. */
  readonly inversion: readonly Finding[]
  /** Without an earlier one of its key. */
  readonly gap: readonly Finding[]
  /** Two at once where there should be one, and no fault explains it. */
  readonly overlap: readonly Finding[]
  /** Handled again, and no fault explains it. */
  readonly duplicate: readonly Finding[]
}

/** What happened, in numbers. */
export interface Totals {
  readonly committed: number
  readonly rolledBack: number
  readonly unknown: number
  readonly runs: number
  /** Of the runs: those whose repetition a fault would explain. Only of the others it would be told as an anomaly. */
  readonly excused: number
  readonly faults: number
}

/** What is to be said of a history. */
export interface Verdict {
  /** True if there is no anomaly and every recovery was within the bar. */
  readonly ok: boolean
  readonly anomalies: Anomalies
  /** Duplicates and overlaps that a fault explains: allowed, and told. */
  readonly explained: { readonly duplicates: readonly Repetition[]; readonly overlaps: readonly Repetition[] }
  readonly recoveries: readonly Recovery[]
  readonly tooSlow: readonly Recovery[]
  readonly totals: Totals
}

/**
 * Judges a history by nothing but what publishers were told and what handlers saw. Pure: it may be given the lines of
 * any run, in any order.
 */
export function judge(entries: readonly Entry[], { leaseMs, recoveryBarMs = null }: Rules): Verdict {
  const history = readHistory(entries)
  const repeated = duplicates(history, leaseMs)
  const overlapping = overlaps(history, leaseMs)
  const { inversions, gaps } = orderOf(history)
  const anomalies: Anomalies = {
    ...undelivered(history),
    phantom: phantoms(history),
    early: early(history),
    identity: changed(history),
    inversion: inversions,
    gap: gaps,
    overlap: overlapping.filter(({ fault }) => fault === null),
    duplicate: repeated.filter(({ fault }) => fault === null),
  }
  const measured = recoveries(history, leaseMs)
  const tooSlow =
    recoveryBarMs === null
      ? []
      : measured.filter(({ aloneMs, sinceMs }) => Math.max(aloneMs, sinceMs) > recoveryBarMs)
  return {
    ok: tooSlow.length === 0 && Object.values(anomalies).every((findings) => findings.length === 0),
    anomalies,
    explained: {
      duplicates: repeated.filter(({ fault }) => fault !== null),
      overlaps: overlapping.filter(({ fault }) => fault !== null),
    },
    recoveries: measured,
    tooSlow,
    totals: totalsOf(history, leaseMs),
  }
}

/** How many anomalies there are of each name: `{ lost: 0, … }`. */
export function countAnomalies({ anomalies }: Verdict): Readonly<Record<keyof Anomalies, number>> {
  return Object.fromEntries(
    Object.entries(anomalies).map(([name, findings]) => [name, (findings as readonly Finding[]).length]),
  ) as Record<keyof Anomalies, number>
}

function totalsOf(history: History, leaseMs: number): Totals {
  const { published, runs, faults } = history
  const count = (status: string): number =>
    [...published.values()].filter((event) => event.status === status).length
  return {
    committed: count('committed'),
    rolledBack: count('rolledBack'),
    unknown: count('unknown'),
    runs: runs.length,
    excused: excused(history, leaseMs),
    faults: faults.length,
  }
}
