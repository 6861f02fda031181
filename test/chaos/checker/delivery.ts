import type { Finding } from './entry.ts'
import { type History, isDue, type Published, pairOf, type Run, settledAt } from './history.ts'

/** Committed, and never handled to a good end: `stuck` if the outbox still had it, `lost` if not. */
export function undelivered(history: History): { readonly lost: Finding[]; readonly stuck: Finding[] } {
  const lost: Finding[] = []
  const stuck: Finding[] = []
  for (const subscription of history.subscriptions.values()) {
    for (const event of history.published.values()) {
      const { eventId, status } = event
      if (status !== 'committed' || !isDue(subscription, event)) continue
      if (settledAt(history, subscription.name, eventId) < Number.POSITIVE_INFINITY) continue
      const held = history.left.get(pairOf(subscription.name, eventId))
      const runs = history.runsOf(subscription.name, eventId).length
      const finding = { eventId, subscription: subscription.name }
      if (held === undefined) lost.push({ ...finding, text: `committed, ${runs} runs, none done` })
      else stuck.push({ ...finding, text: `still ${held} after the quiet, ${runs} runs` })
    }
  }
  return { lost, stuck: [...stuck, ...leftBesides(history, stuck)] }
}

/** What the outbox still holds although its handler has been through with it. */
function leftBesides({ left }: History, known: readonly Finding[]): Finding[] {
  const named = new Set(known.map(({ subscription, eventId }) => pairOf(subscription ?? '', eventId)))
  return [...left]
    .filter(([pair]) => !named.has(pair))
    .map(([pair, status]) => {
      const [subscription = '', eventId = ''] = pair.split('\n')
      return { eventId, subscription, text: `handled, yet still ${status} after the quiet` }
    })
}

/** Handled, and never committed: of a transaction that rolled back, or of nobody. */
export function phantoms({ runs, published }: History): Finding[] {
  return eachOnce(runs).flatMap((run) => {
    const event = published.get(run.eventId)
    if (event === undefined) return [findingOf(run, 'nobody published it')]
    return event.status === 'rolledBack'
      ? [findingOf(run, `transaction ${event.transaction} rolled back`)]
      : []
  })
}

/** Handled before its transaction could have been committed. */
export function early({ runs, published }: History): Finding[] {
  return runs.flatMap((run) => {
    const event = published.get(run.eventId)
    if (event === undefined || event.status === 'rolledBack' || run.from >= event.possibleAt) return []
    const before = Number.isFinite(event.possibleAt) ? `${event.possibleAt - run.from} ms before` : 'without'
    return [findingOf(run, `seen ${before} the request to commit`)]
  })
}

/** Not the same to a handler as to its publisher, or not the same each time. */
export function changed({ runs, published }: History): Finding[] {
  const sequences = new Map<string, number | null>()
  return runs.flatMap((run) => {
    const event = published.get(run.eventId)
    const differences = event === undefined ? [] : differencesOf(event, run)
    const sequence = sequences.get(run.eventId)
    if (sequence === undefined) sequences.set(run.eventId, run.sequence)
    else if (sequence !== run.sequence) differences.push(`sequence ${sequence} became ${run.sequence}`)
    return differences.map((text) => findingOf(run, text))
  })
}

function differencesOf(event: Published, run: Run): string[] {
  const fields = ['type', 'key', 'digest'] as const
  return fields
    .filter((field) => event[field] !== run[field])
    .map((field) => `${field} ${event[field]} became ${run[field]}`)
}

function eachOnce(runs: readonly Run[]): readonly Run[] {
  const pairs = new Map<string, Run>()
  for (const run of runs) {
    const pair = pairOf(run.subscription, run.eventId)
    if (!pairs.has(pair)) pairs.set(pair, run)
  }
  return [...pairs.values()]
}

function findingOf({ eventId, subscription }: Run, text: string): Finding {
  return { eventId, subscription, text }
}
