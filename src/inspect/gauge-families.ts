import type { Family, Label } from '../observe/metrics/exposition.ts'
import type { BoundedLabels } from '../observe/metrics/labels.ts'
import type { BacklogGauge, DeadLetterGauge, Gauges, SubscriptionGauge } from '../store/gauge-store.ts'
import type { Collection } from './gauge-collector.ts'

const PENDING = 'Deliveries that wait, retries included.'
const PROCESSING = 'Deliveries that workers have in hand.'
const DEAD = 'Dead letters that wait for a person.'
const OLDEST = 'Age of the oldest delivery that waits; 0 if none does.'

const NONE: Gauges = {
  backlog: [],
  deadLetters: [],
  subscriptions: [],
  tables: [],
  oldestEventSeconds: null,
  capped: false,
}

/**
 * The gauges of the tables. Where they could not be read there are none but `collection_success`: a figure of yesterday
 * that looks like one of today would keep an alarm silent.
 */
export function gaugeFamilies(collection: Collection, labels: BoundedLabels): readonly Family[] {
  const gauges = collection.gauges ?? NONE
  const isRead = collection.gauges !== null
  return [
    ...streamFamilies(gauges, labels, isRead),
    ...subscriptionFamilies(gauges, labels),
    ...tableFamilies(gauges),
    gauge(
      'count_capped',
      '1 while a count ended at its limit: there may be more than the gauges say.',
      isRead ? [[[], Number(gauges.capped)]] : [],
    ),
    gauge('collection_success', '1 if the tables could be read for the gauges, in time.', [
      [[], Number(isRead)],
    ]),
    gauge('collection_duration_seconds', 'How long reading the tables for the gauges took.', [
      [[], collection.durationMs / 1_000],
    ]),
  ]
}

function streamFamilies(gauges: Gauges, labels: BoundedLabels, isRead: boolean): readonly Family[] {
  const { backlog, deadLetters } = gauges
  const streamOf = ({ stream }: BacklogGauge | DeadLetterGauge): string => labels.stream.of(stream)
  const typeOf = ({ eventType }: DeadLetterGauge): string => labels.eventType.of(eventType)
  const figures = {
    pending: combined(backlog, streamOf, pendingOf, add),
    processing: combined(backlog, streamOf, processingOf, add),
    oldest: combined(backlog, streamOf, oldestOf, Math.max),
    dead: combined(deadLetters, streamOf, ({ count }) => count, add),
  }
  const types = new Map<string, Entry>()
  for (const letter of deadLetters) {
    const at: readonly Label[] = [
      ['stream', streamOf(letter)],
      ['eventType', typeOf(letter)],
    ]
    const key = JSON.stringify(at)
    types.set(key, [at, (types.get(key)?.[1] ?? 0) + letter.count])
  }
  // A stream of which nothing waits has a zero, not a gap: an alarm needs it to end.
  const streams = isRead
    ? [...new Set([...labels.stream.values, ...figures.pending.keys(), ...figures.dead.keys()])]
    : []
  const each = (figure: ReadonlyMap<string, number>): readonly Entry[] =>
    streams.map((stream) => [[['stream', stream]], figure.get(stream) ?? 0])
  return [
    gauge('pending', PENDING, each(figures.pending)),
    gauge('processing', PROCESSING, each(figures.processing)),
    gauge('dead', DEAD, each(figures.dead)),
    gauge('oldest_pending_seconds', OLDEST, each(figures.oldest)),
    gauge('dead_letters', 'Dead letters that wait for a person, by event type.', [...types.values()]),
  ]
}

function subscriptionFamilies(gauges: Gauges, labels: BoundedLabels): readonly Family[] {
  const nameOf = ({ subscription }: { readonly subscription: string }): string =>
    labels.subscription.of(subscription)
  const names = [...new Set(gauges.subscriptions.map(nameOf))]
  const each = (figure: ReadonlyMap<string, number>): readonly Entry[] =>
    names.map((name) => [[['subscription', name]], figure.get(name) ?? 0])
  const { backlog, deadLetters, subscriptions } = gauges
  const open = (valueOf: (one: BacklogGauge) => number): readonly Entry[] =>
    each(combined(backlog, nameOf, valueOf, add))
  const letters = each(combined(deadLetters, nameOf, ({ count }) => count, add))
  const oldest = each(combined(backlog, nameOf, oldestOf, Math.max))
  return [
    gauge('subscription_pending', PENDING, open(pendingOf)),
    gauge('subscription_held', 'Deliveries that wait for a retry or behind another.', open(heldOf)),
    gauge('subscription_processing', PROCESSING, open(processingOf)),
    gauge('subscription_dead', DEAD, letters),
    gauge('subscription_oldest_pending_seconds', OLDEST, oldest),
    ...stateFamilies((valueOf) => each(combined(subscriptions, nameOf, valueOf, add))),
  ]
}

function stateFamilies(
  state: (valueOf: (one: SubscriptionGauge) => number) => readonly Entry[],
): readonly Family[] {
  const workers = state((one) => one.workers)
  const paused = state((one) => Number(one.paused))
  const joining = state((one) => Number(one.state === 'joining'))
  return [
    gauge('subscription_workers', 'Live workers that serve it.', workers),
    gauge('subscription_paused', '1 while it is paused.', paused),
    gauge('subscription_joining', '1 while it is joining.', joining),
  ]
}

function tableFamilies({ tables, oldestEventSeconds }: Gauges): readonly Family[] {
  const each = (valueOf: (one: (typeof tables)[number]) => number | null): readonly Entry[] =>
    tables.flatMap((one): readonly Entry[] => {
      const value = valueOf(one)
      return value === null ? [] : [[[['table', one.table]], value]]
    })
  return [
    gauge(
      'table_bytes',
      'Size of a table with its indexes and partitions.',
      each(({ bytes }) => bytes),
    ),
    gauge(
      'table_rows',
      'Rows of a table, as the last ANALYZE estimated.',
      each(({ estimatedRows }) => estimatedRows),
    ),
    {
      ...gauge(
        'table_removed_rows_total',
        "Rows removed from a table, by retention, since the server's statistics were reset.",
        each(({ removedRows }) => removedRows),
      ),
      type: 'counter',
    },
    gauge(
      'oldest_event_seconds',
      'Age of the oldest event that is still kept: what retention has left.',
      oldestEventSeconds === null ? [] : [[[], oldestEventSeconds]],
    ),
  ]
}

type Entry = readonly [labels: readonly Label[], value: number]

function gauge(name: string, help: string, entries: readonly Entry[]): Family {
  return {
    name,
    help,
    type: 'gauge',
    samples: entries.map(([labels, value]) => ({ suffix: '', labels, value })),
  }
}

function combined<Row>(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  valueOf: (row: Row) => number,
  combine: (one: number, other: number) => number,
): ReadonlyMap<string, number> {
  const figures = new Map<string, number>()
  for (const row of rows) figures.set(keyOf(row), combine(figures.get(keyOf(row)) ?? 0, valueOf(row)))
  return figures
}

function add(one: number, other: number): number {
  return one + other
}

function pendingOf({ pending }: BacklogGauge): number {
  return pending
}

function heldOf({ held }: BacklogGauge): number {
  return held
}

function processingOf({ processing }: BacklogGauge): number {
  return processing
}

function oldestOf({ oldestPendingSeconds }: BacklogGauge): number {
  return oldestPendingSeconds ?? 0
}
