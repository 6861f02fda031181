import type { FaultEntry } from './entry.ts'
import { type History, isDue, settledAt } from './history.ts'

/** How long deliveries took after a fault. A wait begins with the fault or with the event's commit, whichever came last. */
export interface Recovery {
  readonly fault: string
  readonly name: string
  /** The longest wait that began with it, to the event's good end, whatever else was broken meanwhile. */
  readonly ms: number
  /** The longest of these into which no other fault fell that harms workers. */
  readonly aloneMs: number
  /** The longest wait that was left when it was the last fault that harms workers: what the bar is for. */
  readonly sinceMs: number
}

/** One event on its way to one subscription. */
interface Wait {
  readonly from: number
  readonly to: number
}

type Longest = { -readonly [Figure in 'ms' | 'aloneMs' | 'sinceMs']: number }

/**
 * The recovery time of each fault. With one worker broken the others must take over at once, so that it counts from the
 * fault's beginning; with all of them broken nothing can happen until it is over. `leaseMs` is how long a fault can be felt.
 */
export function recoveries(history: History, leaseMs: number): readonly Recovery[] {
  const longest = new Map<string, Longest>()
  const note = (fault: FaultEntry | undefined, figure: keyof Longest, ms: number): void => {
    if (fault === undefined) return
    const before = longest.get(fault.id) ?? { ms: 0, aloneMs: 0, sinceMs: 0 }
    longest.set(fault.id, { ...before, [figure]: Math.max(before[figure], ms) })
  }
  const faults = new FaultsByTime(history.faults, leaseMs)
  for (const wait of waitsOf(history)) {
    const near = faults.touching(wait.from - leaseMs, wait.to)
    const first = firstOf(near, wait)
    if (first !== undefined) {
      const ms = wait.to - Math.max(wait.from, anchorOf(first))
      note(first, 'ms', ms)
      if (near.every((other) => other === first || !doesHarm(other))) note(first, 'aloneMs', ms)
    }
    const last = faults.lastHarmBefore(wait.to)
    if (last !== undefined) note(last.fault, 'sinceMs', wait.to - Math.max(wait.from, last.at))
  }
  return history.faults.map(({ id, name }) => {
    const { ms, aloneMs, sinceMs } = longest.get(id) ?? { ms: 0, aloneMs: 0, sinceMs: 0 }
    return {
      fault: id,
      name,
      ms: Math.round(ms),
      aloneMs: Math.round(aloneMs),
      sinceMs: Math.round(sinceMs),
    }
  })
}

/** Of every event that was known to be committed. What comes to its end during an outage was not held up by it. */
function* waitsOf(history: History): Generator<Wait> {
  const outages = history.faults.filter(({ workers }) => workers === null)
  for (const subscription of history.subscriptions.values()) {
    for (const event of history.published.values()) {
      if (!Number.isFinite(event.knownAt) || !isDue(subscription, event)) continue
      const to = settledAt(history, subscription.name, event.eventId)
      if (!Number.isFinite(to) || outages.some(({ at, until }) => at <= to && to <= until)) continue
      yield { from: event.knownAt, to }
    }
  }
}

/** What struck first while the event waited; else what can still have been felt when it was committed. */
function firstOf(near: readonly FaultEntry[], { from, to }: Wait): FaultEntry | undefined {
  const over = near.filter((fault) => anchorOf(fault) <= to)
  const harming = over.filter(doesHarm)
  return harming.find((fault) => anchorOf(fault) >= from) ?? harming.at(-1) ?? over[0]
}

function doesHarm({ workers }: FaultEntry): boolean {
  return workers === null || workers.length > 0
}

/** From when on somebody can do something about it. */
function anchorOf({ at, until, workers }: FaultEntry): number {
  return workers === null ? until : at
}

class FaultsByTime {
  readonly #faults: readonly FaultEntry[]
  readonly #harm: readonly { readonly at: number; readonly fault: FaultEntry }[]
  readonly #longestMs: number

  constructor(faults: readonly FaultEntry[], leaseMs: number) {
    this.#faults = faults.toSorted((a, b) => a.at - b.at)
    this.#longestMs = Math.max(leaseMs, ...faults.map(({ at, until }) => until - at))
    // What is set right is a shock, too: a worker that goes on after a pause still believes in its leases.
    this.#harm = faults
      .filter(doesHarm)
      .flatMap((fault) => [...new Set([anchorOf(fault), fault.until])].map((at) => ({ at, fault })))
      .toSorted((a, b) => a.at - b.at)
  }

  /** All that lasted at some time between these. */
  touching(from: number, to: number): readonly FaultEntry[] {
    const first = firstWhere(this.#faults, ({ at }) => at >= from - this.#longestMs)
    const found: FaultEntry[] = []
    for (let n = first; n < this.#faults.length; n += 1) {
      const fault = this.#faults[n] as FaultEntry
      if (fault.at > to) break
      if (fault.until >= from) found.push(fault)
    }
    return found
  }

  /** The last beginning or end of something that harms workers. */
  lastHarmBefore(at: number): { readonly at: number; readonly fault: FaultEntry } | undefined {
    return this.#harm[firstWhere(this.#harm, (harm) => harm.at > at) - 1]
  }
}

/** The place of the first for which the condition holds, as it does for all behind it. */
function firstWhere<Item>(items: readonly Item[], condition: (item: Item) => boolean): number {
  let [low, high] = [0, items.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (condition(items[middle] as Item)) high = middle
    else low = middle + 1
  }
  return low
}
