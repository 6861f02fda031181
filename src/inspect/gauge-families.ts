import type { Family, Label } from '../observe/metrics/exposition.ts'
import type { BoundedLabels } from '../observe/metrics/labels.ts'
import type { BacklogGauge, DeadLetterGauge, Gauges, SubscriptionGauge } from '../store/gauge-store.ts'
import type { Collection } from './gauge-collector.ts'

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
    pending: combined(backlog, streamOf, ({ pending }) => pending, add),
    processing: combined(backlog, streamOf, ({ processing }) => processing, add),
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
    gauge('pending', 'Deliveries that wait, retries included.', each(figures.pending)),
    gauge('processing', 'Deliveries that workers have in hand.', each(figures.processing)),
    gauge('dead', 'Dead letters that wait for a person.', each(figures.dead)),
    gauge(
      'oldest_pending_seconds',
      'Age of the oldest delivery that waits; 0 if none does.',
      each(figures.oldest),
    ),
    gauge('dead_letters', 'Dead letters that wait for a person, by event type.', [...types.values()]),
  ]
}

function subscriptionFamilies(gauges: Gauges, labels: BoundedLabels): readonly Family[] {
  const nameOf = ({ subscription }: { readonly subscription: string }): string =>
    labels.subscription.of(subscription)
  const { backlog, deadLetters, subscriptions } = gauges
  const names = [...new Set(subscriptions.map(nameOf))]
  const each = (figure: ReadonlyMap<string, number>): readonly Entry[] =>
    names.map((name) => [[['subscription', name]], figure.get(name) ?? 0])
  const open = (valueOf: (one: BacklogGauge) => number): readonly Entry[] =>
    each(combined(backlog, nameOf, valueOf, add))
  const state = (valueOf: (one: SubscriptionGauge) => number): readonly Entry[] =>
    each(combined(subscriptions, nameOf, valueOf, add))
  return [
    gauge(
      'subscription_pending',
      'Deliveries that wait, retries included.',
      open(({ pending }) => pending),
    ),
    gauge(
      'subscription_held',
      'Deliveries that wait for a retry or behind another.',
      open(({ held }) => held),
    ),
    gauge(
      'subscription_processing',
      'Deliveries that workers have in hand.',
      open(({ processing }) => processing),
    ),
    gauge(
      'subscription_dead',
      'Dead letters that wait for a person.',
      each(combined(deadLetters, nameOf, ({ count }) => count, add)),
    ),
    gauge(
      'subscription_oldest_pending_seconds',
      'Age of the oldest delivery that waits; 0 if none does.',
      each(combined(backlog, nameOf, oldestOf, Math.max)),
    ),
    gauge(
      'subscription_workers',
      'Live workers that serve it.',
      state(({ workers }) => workers),
    ),
    gauge(
      'subscription_paused',
      '1 while it is paused.',
      state(({ paused }) => Number(paused)),
    ),
    gauge(
      'subscription_joining',
      '1 while it is joining.',
      state(({ state: at }) => Number(at === 'joining')),
    ),
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

function oldestOf({ oldestPendingSeconds }: BacklogGauge): number {
  return oldestPendingSeconds ?? 0
}
