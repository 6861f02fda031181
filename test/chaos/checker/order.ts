import type { Finding } from './entry.ts'
import { groupBy } from './group-by.ts'
import { type History, isDue, type Published, type Run, type Subscribed, settledAt } from './history.ts'

/** What is wrong with the order in which the events of a key were first seen. */
export interface OrderReport {
  /** Seen before an earlier one of its key was seen, or was through. */
  readonly inversions: readonly Finding[]
  /** Seen although an earlier one of its key never was. */
  readonly gaps: readonly Finding[]
}

interface Place {
  readonly run: Run
  readonly event: Published
}

/** Order per key, on the subscriptions that promise it. Late repetitions are no inversion: only first sights count. */
export function orderOf(history: History): OrderReport {
  const reports = [...history.subscriptions.values()]
    .filter(({ ordered }) => ordered)
    .flatMap((subscription) => keysOf(history, subscription))
  return {
    inversions: reports.flatMap(({ inversions }) => inversions),
    gaps: reports.flatMap(({ gaps }) => gaps),
  }
}

function keysOf(history: History, subscription: Subscribed): readonly OrderReport[] {
  const seen = new Set<string>()
  const places: Place[] = []
  for (const run of history.runs) {
    const event = history.published.get(run.eventId)
    if (run.subscription !== subscription.name || event === undefined || seen.has(run.eventId)) continue
    seen.add(run.eventId)
    places.push({ run, event })
  }
  const due = [...history.published.values()].filter(
    (event) => event.status === 'committed' && isDue(subscription, event) && !seen.has(event.eventId),
  )
  const unseen = groupBy(due, ({ key }) => key)
  return [...groupBy(places, ({ event }) => event.key)].map(([key, ofKey]) => ({
    inversions: [
      ...seenTooLate(ofKey),
      ...outOfTransaction(ofKey),
      ...outOfSequence(ofKey),
      ...aheadOf(history, ofKey),
    ],
    gaps: [...neverSeen(ofKey, unseen.get(key) ?? []), ...sequenceGaps(history, subscription, ofKey)],
  }))
}

/** One was known to be committed before the other began, and yet was seen after it. */
function seenTooLate(places: readonly Place[]): Finding[] {
  const findings: Finding[] = []
  let soonest: Place | undefined
  for (const place of places.toReversed()) {
    if (soonest !== undefined && soonest.event.knownAt < place.event.begunAt) {
      findings.push(finding(place, `seen before ${soonest.event.eventId}, committed before it was begun`))
    }
    if (soonest === undefined || place.event.knownAt < soonest.event.knownAt) soonest = place
  }
  return findings
}

/** Events of one transaction keep the order in which it published them. */
function outOfTransaction(places: readonly Place[]): Finding[] {
  const last = new Map<string, Place>()
  return places.flatMap((place) => {
    const before = last.get(place.event.transaction)
    if (before === undefined || before.event.index < place.event.index) {
      last.set(place.event.transaction, place)
      return []
    }
    return [finding(place, `seen after ${before.event.eventId}, published after it by the same transaction`)]
  })
}

/** The numbers that the database gave grow. */
function outOfSequence(places: readonly Place[]): Finding[] {
  let highest = 0
  return places.flatMap((place) => {
    const { sequence } = place.run
    if (sequence === null) return []
    if (sequence > highest) {
      highest = sequence
      return []
    }
    return [finding(place, `number ${sequence} seen after number ${highest}`)]
  })
}

/** It began while an earlier one of its key had not come to a good end. */
function aheadOf(history: History, places: readonly Place[]): Finding[] {
  let open: (Place & { readonly settled: number })[] = []
  return places.flatMap((place) => {
    open = open.filter(({ settled }) => settled > place.run.from)
    const before = open.find((other) => precedes(other, place))
    open.push({ ...place, settled: settledAt(history, place.run.subscription, place.event.eventId) })
    return before === undefined
      ? []
      : [finding(place, `began before ${before.event.eventId}, the one before it, was done`)]
  })
}

function precedes(one: Place, other: Place): boolean {
  if (one.event.transaction === other.event.transaction) return one.event.index < other.event.index
  if (one.run.sequence !== null && other.run.sequence !== null) return one.run.sequence < other.run.sequence
  return one.event.knownAt < other.event.begunAt
}

/** Nobody saw the earlier one at all. */
function neverSeen(places: readonly Place[], unseen: readonly Published[]): Finding[] {
  return unseen.flatMap((missing) => {
    const after = places.find(({ event }) => missing.knownAt < event.begunAt)
    return after === undefined ? [] : [finding(after, `seen although ${missing.eventId} before it never was`)]
  })
}

/** A number is missing that belongs to an event which the subscription takes, or to one that nobody ever saw. */
function sequenceGaps(history: History, subscription: Subscribed, places: readonly Place[]): Finding[] {
  const numbers = new Set(places.map(({ run }) => run.sequence))
  const first = Math.min(...[...numbers].filter((number) => number !== null))
  const takesAll = subscription.takes.every(({ types }) => types === null)
  return places.flatMap((place) => {
    const before = (place.run.sequence ?? 0) - 1
    if (before < first || numbers.has(before)) return []
    const missing = history.runByNumber(place.event.key, before)
    const event = missing === undefined ? undefined : history.published.get(missing.eventId)
    const isOwed = event === undefined ? takesAll : isDue(subscription, event)
    return isOwed ? [finding(place, `number ${before} of its key never was seen`)] : []
  })
}

function finding({ run }: Place, text: string): Finding {
  return { eventId: run.eventId, subscription: run.subscription, text: `${text} (key ${run.key})` }
}
