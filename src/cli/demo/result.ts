import type { SubscriptionStatus } from '../../store/inspect-store.ts'
import type { JournalCounts, Latency } from './journal.ts'

/** What the ledger's own table says. */
export interface LedgerAudit {
  readonly entries: number
  readonly orders: number
  /** Entries that were not the next one of their order. */
  readonly violations: number
}

/** One line of the equation: published = delivered + pending + dead. */
export interface Balance {
  readonly name: string
  readonly published: number
  readonly delivered: number
  readonly pending: number
  readonly dead: number
  readonly holds: boolean
}

/** What a run of the demo came to. */
export interface DemoResult {
  readonly holds: boolean
  /** Events in the table, which must be those whose transactions committed. */
  readonly events: number
  readonly subscriptions: readonly Balance[]
  readonly total: Balance
  readonly rolledBack: { readonly transactions: number; readonly deliveredEvents: number }
  readonly ledger: LedgerAudit
  readonly latencyMs: Latency
}

/** Everything the verdict is made of. */
export interface Findings {
  readonly counts: JournalCounts
  readonly latency: Latency
  readonly events: number
  readonly statuses: readonly SubscriptionStatus[]
  readonly ledger: LedgerAudit
}

/** Compares what the shop published with what the database says became of it. */
export function judge({ counts, latency, events, statuses, ledger }: Findings): DemoResult {
  const subscriptions = statuses.map(({ name, counts: states }) =>
    balance(name, counts.published, states.DONE, states.PENDING + states.PROCESSING, states.DEAD),
  )
  const sum = (pick: (line: Balance) => number): number =>
    subscriptions.reduce((total, line) => total + pick(line), 0)
  const total = balance(
    'total',
    counts.published * subscriptions.length,
    sum((line) => line.delivered),
    sum((line) => line.pending),
    sum((line) => line.dead),
  )
  const holds =
    events === counts.published &&
    subscriptions.every((line) => line.holds) &&
    total.holds &&
    counts.ghosts === 0 &&
    ledger.violations === 0
  return {
    holds,
    events,
    subscriptions,
    total,
    rolledBack: { transactions: counts.rolledBack, deliveredEvents: counts.ghosts },
    ledger,
    latencyMs: latency,
  }
}

function balance(name: string, published: number, delivered: number, pending: number, dead: number): Balance {
  return { name, published, delivered, pending, dead, holds: published === delivered + pending + dead }
}
