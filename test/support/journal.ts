import type { Entry, Identity, Outcome } from '../chaos/checker/entry.ts'
import { countAnomalies, judge, type Verdict } from '../chaos/checker/judge.ts'

/** Longer than any history: here a fault explains what it touched, however many steps later. */
const LEASE_TICKS = 1_000_000

/** A transaction of a publisher, as it goes on. */
export interface Publication {
  /** The publisher is about to ask for the COMMIT. */
  committing(): void
  concluded(outcome: Outcome): void
}

/** A run of a handler, as it goes on. */
export interface Run {
  done(): void
  failed(): void
}

/** How a handler meets an event. */
export interface Sight {
  readonly worker: string
  readonly attempt: number
  readonly sequence: number | null
}

/** The history of one test in one process, in steps instead of milliseconds. */
export class Journal {
  readonly entries: Entry[] = []
  readonly #subscription: string
  readonly #order: 'none' | 'key'
  #ticks = 0
  #transactions = 0
  #runs = 0

  /** One subscription, which takes these types, or everything, from now on. */
  constructor(subscription: string, order: 'none' | 'key', types: readonly string[] | null = null) {
    this.#subscription = subscription
    this.#order = order
    this.takes(types)
  }

  /** From now on it takes these too. */
  takes(types: readonly string[] | null): void {
    const rest = { subscription: this.#subscription, order: this.#order, oneAtATime: false, types }
    this.entries.push({ kind: 'subscribed', at: this.tick(), ...rest })
  }

  /** The next step. */
  tick(): number {
    this.#ticks += 1
    return this.#ticks
  }

  /** A publisher begins. */
  begun(events: readonly Identity[]): Publication {
    this.#transactions += 1
    const transaction = `t${this.#transactions}`
    this.entries.push({ kind: 'begun', at: this.tick(), transaction, publisher: 'p', events })
    return {
      committing: () => void this.entries.push({ kind: 'committing', at: this.tick(), transaction }),
      concluded: (outcome) =>
        void this.entries.push({ kind: 'concluded', at: this.tick(), transaction, outcome }),
    }
  }

  /** A transaction that came to its end. */
  published(events: readonly Identity[], outcome: Outcome = 'committed'): void {
    const publication = this.begun(events)
    publication.committing()
    publication.concluded(outcome)
  }

  /** A handler begins. */
  seen(event: Identity, sight: Sight): Run {
    const run = this.#begin(event, sight, this.tick())
    return {
      done: () => this.#end(run, 'done', this.tick()),
      failed: () => this.#end(run, 'failed', this.tick()),
    }
  }

  /** A handler that came to a good end in one step; `at` if that was taken before. */
  handled(event: Identity, sight: Sight, at: number = this.tick()): void {
    this.#end(this.#begin(event, sight, at), 'done', at)
  }

  /** Something befell these workers. */
  fault(name: string, workers: readonly string[]): void {
    const at = this.tick()
    this.entries.push({ kind: 'fault', at, until: at, id: `${name}@${at}`, name, workers })
  }

  /** Their processes are gone. */
  died(worker: string): void {
    this.fault('kill', [worker])
    this.entries.push({ kind: 'died', at: this.tick(), worker })
  }

  setAside(eventId: string): void {
    this.entries.push({ kind: 'setAside', at: this.tick(), subscription: this.#subscription, eventId })
  }

  left(eventId: string, status: string): void {
    this.entries.push({ kind: 'left', at: this.tick(), subscription: this.#subscription, eventId, status })
  }

  /** What is to be said of it so far. */
  judge(): Verdict {
    return judge(this.entries, { leaseMs: LEASE_TICKS })
  }

  #begin(event: Identity, { worker, attempt, sequence }: Sight, at: number): string {
    this.#runs += 1
    const run = `r${this.#runs}`
    const rest = { run, worker, subscription: this.#subscription, attempt, sequence, ...event }
    this.entries.push({ kind: 'seen', at, ...rest })
    return run
  }

  #end(run: string, outcome: 'done' | 'failed', at: number): void {
    this.entries.push({ kind: 'finished', at, run, outcome })
  }
}

/** The names of what is wrong with a history, each with how often. */
export function anomaliesOf(verdict: Verdict): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(countAnomalies(verdict)).filter(([, count]) => count > 0))
}
