import type pg from 'pg'

/** An event as its publisher knows it: the n-th of its key. */
export interface PublishedEvent {
  readonly eventId: string
  readonly key: string
  readonly seq: number
}

/** One run of a handler, in the order in which they happened. */
export interface HandledEvent extends PublishedEvent {
  readonly worker: string
}

/** What is wrong with a history. Duplicates are allowed where a fault explains them; nothing else is. */
export interface HistoryReport {
  /** Committed, and never handled. */
  readonly lost: readonly string[]
  /** Handled, and never committed. */
  readonly phantoms: readonly string[]
  /** Handled for the first time after a later event of the same key was. */
  readonly inversions: readonly string[]
  /** Handled more than once. */
  readonly duplicates: readonly string[]
}

/** Reads a history, whatever made it, and names everything that an outbox must not do. */
export function checkHistory(
  committed: readonly PublishedEvent[],
  handled: readonly HandledEvent[],
): HistoryReport {
  const known = new Set(committed.map(({ eventId }) => eventId))
  const firsts = new Map<string, HandledEvent>()
  const duplicates = new Set<string>()
  for (const event of handled) {
    if (firsts.has(event.eventId)) duplicates.add(event.eventId)
    else firsts.set(event.eventId, event)
  }
  return {
    lost: [...known].filter((eventId) => !firsts.has(eventId)),
    phantoms: [...firsts.keys()].filter((eventId) => !known.has(eventId)),
    inversions: inversionsOf([...firsts.values()]),
    duplicates: [...duplicates],
  }
}

/** Runs of events that came again after a later event of their key for the last time: that one was done by then. */
export function overtakenBy(handled: readonly HandledEvent[]): readonly string[] {
  const lasts = new Map<string, HandledEvent>()
  for (const event of handled) {
    lasts.delete(event.eventId) // so that they stand in the order of their last runs
    lasts.set(event.eventId, event)
  }
  return inversionsOf([...lasts.values()])
}

function inversionsOf(runs: readonly HandledEvent[]): readonly string[] {
  const highest = new Map<string, number>()
  const inversions: string[] = []
  for (const { key, seq, worker } of runs) {
    const before = highest.get(key) ?? Number.NEGATIVE_INFINITY
    if (seq < before) inversions.push(`${key}: ${seq} after ${before} (${worker})`)
    else highest.set(key, seq)
  }
  return inversions
}

/** Where handlers of any process write down what they did: one row per run, numbered as they happen. */
export async function createHistory(pool: pg.Pool, schema: string): Promise<void> {
  await pool.query(
    `create table ${schema}.history (
       n bigint generated always as identity primary key,
       event_id uuid not null, key text not null, seq integer not null, worker text not null)`,
  )
}

/** Writes down one run of a handler. */
export async function recordHandled(
  client: Pick<pg.Pool, 'query'>,
  schema: string,
  { eventId, key, seq, worker }: HandledEvent,
): Promise<void> {
  await client.query(`insert into ${schema}.history (event_id, key, seq, worker) values ($1, $2, $3, $4)`, [
    eventId,
    key,
    seq,
    worker,
  ])
}

/** Every run so far, in the order in which they happened. */
export async function readHistory(
  client: Pick<pg.Pool, 'query'>,
  schema: string,
): Promise<readonly HandledEvent[]> {
  const { rows } = await client.query<{ event_id: string; key: string; seq: number; worker: string }>(
    `select event_id, key, seq, worker from ${schema}.history order by n`,
  )
  return rows.map(({ event_id, ...rest }) => ({ eventId: event_id, ...rest }))
}
