import type { BacklogGauge } from '../gauge-store.ts'
import { type PgClient, type RawRow, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { unreadEvents } from './unread-events.ts'

// Each part reads one partial index in its own order and ends at the limit, and the stream of a row is looked up by its
// event's id: nothing is ever sorted, hashed or read from end to end. The heads of the lanes are there for their age:
// where a count ends at the limit, the oldest may stand in a lane that was not reached.
const backlogSql = (schema: QuotedSchema): string => `
  select s.name, d.kind, e.stream, count(*), extract(epoch from clock_timestamp() - min(d.created_at))::float8
    from ${schema}.outbox_subscription s
    cross join lateral (
      (select 'fresh' as kind, d.event_id, d.created_at from ${schema}.outbox_delivery d
        where d.subscription_id = s.id and d.fresh
        order by d.lane, (d.id + 0) limit $1)
      union all
      (select 'held', d.event_id, d.created_at from ${schema}.outbox_delivery d
        where d.subscription_id = s.id and d.held and not d.suspect and d.next_retry_at is not null
        order by d.lane, d.next_retry_at, d.id limit $1)
      union all
      (select 'suspect', d.event_id, d.created_at from ${schema}.outbox_delivery d
        where d.subscription_id = s.id and d.held and d.suspect
        order by d.id, d.lane limit $1)
      union all
      (select 'leased', h.event_id, h.created_at from ${schema}.outbox_in_hand h
        where h.subscription_id = s.id limit $1)
      union all
      (select 'head', h.event_id, h.created_at
         from generate_series(0, greatest(s.lanes - 1, 0)) as l (lane)
         cross join lateral (
           select d.event_id, d.created_at from ${schema}.outbox_delivery d
            where d.subscription_id = s.id and d.lane = l.lane and d.fresh
            order by (d.id + 0) limit 1) h)
    ) d
    cross join lateral (
      select e.stream from ${schema}.outbox_event e where e.event_id = d.event_id offset 0) e
   where s.state <> 'retired'
   group by s.name, d.kind, e.stream`

/** What was counted, and whether a count ended at the limit. */
export interface CountedBacklog {
  readonly backlog: readonly BacklogGauge[]
  readonly capped: boolean
}

interface Counted {
  readonly subscription: string
  readonly kind: string
  readonly stream: string
  readonly count: number
  readonly oldestSeconds: number
}

/** The open deliveries of every subscription by stream, each kind of them counted up to the limit. */
export async function backlogGauges(
  client: PgClient,
  schema: QuotedSchema,
  countLimit: number,
): Promise<CountedBacklog> {
  const open = await rawQuery(client, backlogSql(schema), [countLimit])
  const look = { most: countLimit, stuckAfterMs: 0 }
  const inLog = await unreadEvents((sql, values) => rawQuery(client, sql, values), schema, look)
  const counted = [...open.map(toCounted), ...inLog.unread.map((part) => ({ ...part, kind: 'unread' }))]
  const groups = grouped(counted, ({ subscription, stream }) => [subscription, stream])
  const kinds = grouped(counted, ({ subscription, kind }) => [subscription, kind])
  return {
    backlog: groups.map(toGauge),
    capped: inLog.capped.size > 0 || kinds.some((parts) => sumOf(parts) >= countLimit),
  }
}

function toCounted(row: RawRow): Counted {
  return {
    subscription: row[0] as string,
    kind: row[1] as string,
    stream: row[2] as string,
    count: Number(row[3]),
    // A clock that was set back must not make it negative.
    oldestSeconds: Math.max(0, Number(row[4])),
  }
}

function grouped(
  counted: readonly Counted[],
  keyOf: (one: Counted) => readonly string[],
): readonly (readonly Counted[])[] {
  const groups = new Map<string, Counted[]>()
  for (const one of counted) {
    const key = JSON.stringify(keyOf(one))
    groups.set(key, [...(groups.get(key) ?? []), one])
  }
  return [...groups.values()]
}

function toGauge(parts: readonly Counted[]): BacklogGauge {
  const of = (...kinds: readonly string[]): readonly Counted[] =>
    parts.filter(({ kind }) => kinds.includes(kind))
  const pending = of('fresh', 'held', 'suspect', 'unread')
  const ages = [...pending, ...of('head')].map(({ oldestSeconds }) => oldestSeconds)
  const { subscription = '', stream = '' } = parts[0] ?? {}
  return {
    subscription,
    stream,
    pending: sumOf(pending),
    held: sumOf(of('held', 'suspect')),
    processing: sumOf(of('leased')),
    oldestPendingSeconds: ages.length === 0 ? null : Math.max(...ages),
  }
}

function sumOf(parts: readonly Counted[]): number {
  return parts.reduce((sum, { count }) => sum + count, 0)
}
