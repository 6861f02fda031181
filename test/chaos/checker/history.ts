import type { Entry, FaultEntry, Identity } from './entry.ts'
import { groupBy } from './group-by.ts'

/** An event as its publisher knows it. */
export interface Published extends Identity {
  readonly transaction: string
  /** Its place among the events of its transaction. */
  readonly index: number
  /** When its publisher first began. */
  readonly begunAt: number
  /** When its COMMIT could have happened at the earliest; infinite if nobody ever asked for one. */
  readonly possibleAt: number
  /** When its publisher knew that it was committed; infinite if it never knew. */
  readonly knownAt: number
  readonly status: 'committed' | 'rolledBack' | 'unknown'
}

/** One run of a handler. */
export interface Run extends Identity {
  readonly run: string
  readonly worker: string
  readonly subscription: string
  readonly attempt: number
  readonly sequence: number | null
  readonly from: number
  /** Infinite while nobody said that it ended. */
  readonly until: number
  /** 'cut' if it came to no end of its own. */
  readonly outcome: 'done' | 'failed' | 'cut'
}

/** A subscription and since when it takes what. */
export interface Subscribed {
  readonly name: string
  readonly ordered: boolean
  readonly oneAtATime: boolean
  readonly takes: readonly { readonly at: number; readonly types: readonly string[] | null }[]
}

/** A history, put in order. */
export interface History {
  readonly published: ReadonlyMap<string, Published>
  readonly subscriptions: ReadonlyMap<string, Subscribed>
  /** All runs by the time they began. */
  readonly runs: readonly Run[]
  /** The runs of an event for a subscription, by time. */
  runsOf(subscription: string, eventId: string): readonly Run[]
  /** The first run, for any subscription, of the event that has this number on its key. */
  runByNumber(key: string, sequence: number): Run | undefined
  readonly setAside: ReadonlyMap<string, number>
  readonly left: ReadonlyMap<string, string>
  readonly faults: readonly FaultEntry[]
}

/** Names an event on its way to a subscription. */
export function pairOf(subscription: string, eventId: string): string {
  return `${subscription}\n${eventId}`
}

type Of<Kind extends Entry['kind']> = Extract<Entry, { readonly kind: Kind }>

/** Puts the lines of all journals together. */
export function readHistory(lines: readonly Entry[]): History {
  const entries = lines.toSorted((a, b) => a.at - b.at)
  const of = <Kind extends Entry['kind']>(kind: Kind): Of<Kind>[] =>
    entries.filter((entry): entry is Of<Kind> => entry.kind === kind)
  const runs = runsFrom(of('seen'), of('finished'), of('died'))
  const byPair = groupBy(runs, ({ subscription, eventId }) => pairOf(subscription, eventId))
  const byNumber = groupBy(runs, ({ key, sequence }) => `${sequence}\n${key}`)
  return {
    published: publishedFrom(of('begun'), of('committing'), of('concluded'), runs),
    subscriptions: subscribedFrom(of('subscribed')),
    runs,
    runByNumber: (key, sequence) => byNumber.get(`${sequence}\n${key}`)?.[0],
    runsOf: (subscription, eventId) => byPair.get(pairOf(subscription, eventId)) ?? [],
    setAside: new Map(of('setAside').map((e) => [pairOf(e.subscription, e.eventId), e.at])),
    left: new Map(of('left').map((e) => [pairOf(e.subscription, e.eventId), e.status])),
    faults: of('fault'),
  }
}

function runsFrom(
  seen: readonly Of<'seen'>[],
  finished: readonly Of<'finished'>[],
  died: readonly Of<'died'>[],
): readonly Run[] {
  const ends = new Map(finished.map((entry) => [entry.run, entry]))
  const deaths = new Map(died.map(({ worker, at }) => [worker, at]))
  return seen.map((entry) => {
    const end = ends.get(entry.run)
    const until = end?.at ?? deaths.get(entry.worker) ?? Number.POSITIVE_INFINITY
    return { ...entry, from: entry.at, until, outcome: end?.outcome ?? 'cut' }
  })
}

function subscribedFrom(entries: readonly Of<'subscribed'>[]): ReadonlyMap<string, Subscribed> {
  const groups = groupBy(entries, ({ subscription }) => subscription)
  return new Map(
    [...groups].map(([name, group]) => [
      name,
      {
        name,
        ordered: group.some(({ order }) => order === 'key'),
        oneAtATime: group.some(({ oneAtATime }) => oneAtATime),
        takes: group.map(({ at, types }) => ({ at, types })),
      },
    ]),
  )
}

function publishedFrom(
  begun: readonly Of<'begun'>[],
  committing: readonly Of<'committing'>[],
  concluded: readonly Of<'concluded'>[],
  runs: readonly Run[],
): ReadonlyMap<string, Published> {
  const asked = groupBy(committing, ({ transaction }) => transaction)
  const told = groupBy(concluded, ({ transaction }) => transaction)
  const seenIds = new Set(runs.map(({ eventId }) => eventId))
  const published = new Map<string, Published>()
  for (const [transaction, [first]] of groupBy(begun, (entry) => entry.transaction)) {
    if (first === undefined) continue
    const possibleAt = asked.get(transaction)?.[0]?.at ?? Number.POSITIVE_INFINITY
    const endings = told.get(transaction) ?? []
    const isSeen = first.events.some(({ eventId }) => seenIds.has(eventId))
    const common = {
      transaction,
      begunAt: first.at,
      possibleAt,
      knownAt: endings.find(({ outcome }) => outcome === 'committed')?.at ?? Number.POSITIVE_INFINITY,
      status: statusOf(asked.get(transaction) ?? [], endings, isSeen),
    }
    for (const [index, event] of first.events.entries()) {
      published.set(event.eventId, { ...event, ...common, index })
    }
  }
  return published
}

/**
 * A commit that was asked for and not refused afterwards may have happened. One whose event was seen has: what remains
 * to be asked is whether all others saw it, and all other events of its transaction were seen.
 */
function statusOf(
  asked: readonly Of<'committing'>[],
  endings: readonly Of<'concluded'>[],
  isSeen: boolean,
): Published['status'] {
  if (endings.some(({ outcome }) => outcome === 'committed')) return 'committed'
  const lastAsked = asked.at(-1)?.at ?? Number.NEGATIVE_INFINITY
  const isRefused = endings.at(-1)?.outcome === 'rolledBack' && (endings.at(-1)?.at ?? 0) >= lastAsked
  const wasUnknown = endings.some(({ outcome }) => outcome === 'unknown')
  if (asked.length === 0 || (isRefused && !wasUnknown)) return 'rolledBack'
  return isSeen ? 'committed' : 'unknown'
}

/** Whether the subscription took events of this type when the event's publisher began. */
export function isDue({ takes }: Subscribed, event: Published): boolean {
  return takes.some(({ at, types }) => at <= event.begunAt && (types === null || types.includes(event.type)))
}

/** When the event had its effect for the subscription, or was set aside: never, if neither happened. */
export function settledAt(history: History, subscription: string, eventId: string): number {
  const done = history.runsOf(subscription, eventId).filter(({ outcome }) => outcome === 'done')
  const aside = history.setAside.get(pairOf(subscription, eventId)) ?? Number.POSITIVE_INFINITY
  return Math.min(aside, ...done.map(({ until }) => until))
}
