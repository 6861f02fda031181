import type { FaultEntry } from './entry.ts'
import { type History, isDue, settledAt } from './history.ts'

/** How long deliveries took after a fault. */
export interface Recovery {
  readonly fault: string
  readonly name: string
  /** The longest wait of an event, from its commit or the fault, whichever came last, to its good end. */
  readonly ms: number
}

interface Anchor {
  readonly at: number
  readonly fault: FaultEntry
}

/**
 * The recovery time of each fault. A wait counts from the last thing that was broken or mended before its end: with
 * one worker broken the others must take over at once, with all of them broken nothing can happen until it is over.
 */
export function recoveries(history: History): readonly Recovery[] {
  const anchors = anchorsOf(history.faults)
  const worst = new Map<string, number>(history.faults.map(({ id }) => [id, 0]))
  const outages = history.faults.filter(({ workers }) => workers === null)
  for (const subscription of history.subscriptions.values()) {
    for (const event of history.published.values()) {
      if (!Number.isFinite(event.knownAt) || !isDue(subscription, event)) continue
      const doneAt = settledAt(history, subscription.name, event.eventId)
      if (!Number.isFinite(doneAt) || outages.some(({ at, until }) => at <= doneAt && doneAt <= until))
        continue
      const anchor = lastBefore(anchors, doneAt)
      if (anchor === undefined) continue
      const waited = doneAt - Math.max(event.knownAt, anchor.at)
      const { id } = anchor.fault
      worst.set(id, Math.max(worst.get(id) ?? 0, waited))
    }
  }
  return history.faults.map(({ id, name }) => ({ fault: id, name, ms: Math.round(worst.get(id) ?? 0) }))
}

function anchorsOf(faults: readonly FaultEntry[]): readonly Anchor[] {
  return faults
    .flatMap((fault) => [
      ...(fault.workers === null ? [] : [{ at: fault.at, fault }]),
      { at: fault.until, fault },
    ])
    .toSorted((a, b) => a.at - b.at)
}

function lastBefore(anchors: readonly Anchor[], at: number): Anchor | undefined {
  let [low, high] = [0, anchors.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((anchors[middle] as Anchor).at <= at) low = middle + 1
    else high = middle
  }
  return anchors[low - 1]
}
