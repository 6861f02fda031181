import type { GateAnswer, LoggedEvent, StreamLease } from '../stream-store.ts'
import { keptQuery, type PgClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// What is parked is held until it is claimed, and in hand until it has ended: there is nothing between. Nearly always
// nothing is, and then no key is looked up.
const gateSql = (schema: QuotedSchema): string => `
  with in_hand as materialized (
    select distinct d.ordering_key from ${schema}.outbox_in_hand d
     where d.subscription_id = $1 and d.ordering_key is not null
  ),
  asked as materialized (
    select t.epoch = $2 and t.generation = $3 and t.until > clock_timestamp() as held, s.state <> 'retired' as is_live, s.paused_at is not null as paused, s.lanes,
           exists (select 1 from ${schema}.outbox_delivery d
                    where d.subscription_id = $1 and d.held and d.ordering_key is not null)
             or exists (select 1 from in_hand) as has_open
      from ${schema}.outbox_stream t join ${schema}.outbox_subscription s on s.id = t.subscription_id
     where t.subscription_id = $1
  )
  select a.held and a.is_live, a.paused, a.has_open,
         case when a.has_open then (
           select jsonb_agg(k.key) from unnest($4::text[]) as k(key)
            where k.key in (select h.ordering_key from in_hand h)
               or exists (select 1 from ${schema}.outbox_delivery d
                           where d.subscription_id = $1 and d.lane = ${schema}.outbox_lane_of(k.key, a.lanes)
                             and d.ordering_key = k.key and d.held)) end,
         (select jsonb_agg(e.event_id) from unnest($5::bigint[], $6::uuid[]) as e(id, event_id)
           where exists (select 1 from ${schema}.outbox_delivery d where d.id = e.id and d.subscription_id = $1)
              or exists (select 1 from ${schema}.outbox_amendment m where m.event_id = e.event_id))
    from asked a`

/** Asks, in one snapshot, whether events of the log may be handed over and which of them have to wait. */
export async function streamGate(
  client: PgClient,
  schema: QuotedSchema,
  lease: StreamLease,
  keys: readonly string[],
  doubtful: readonly LoggedEvent[],
): Promise<GateAnswer> {
  const [row] = await keptQuery(client, 'stream_gate', gateSql(schema), [
    lease.subscriptionId,
    lease.epoch,
    lease.generation,
    keys,
    doubtful.map(({ position }) => position),
    doubtful.map(({ eventId }) => eventId),
  ])
  return {
    held: row?.[0] === 't',
    paused: row?.[1] === 't',
    hasOpen: row?.[2] === 't',
    openKeys: textsOf(row?.[3]),
    settled: textsOf(row?.[4]),
  }
}

const NONE: ReadonlySet<string> = new Set()

function textsOf(json: string | null | undefined): ReadonlySet<string> {
  return json === null || json === undefined ? NONE : new Set(JSON.parse(json) as readonly string[])
}
