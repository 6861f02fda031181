import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import type { PositionRange } from './verify-window.ts'

// DEAD deliveries are not indexed: they are looked for only where there are any. A letter whose delivery is not there is
// told here only where the comparison of events with deliveries cannot: the event is gone too, or was read in the log.
//
// One that blocks its key has an open letter, or nobody could ever let the key go on. All others have a letter, unless it
// was purged: that was resolved longer ago than the purge asked for, and its delivery was not changed afterwards. An hour
// is for what was written a moment later, and for clocks that are set.
const lettersSql = (schema: QuotedSchema): string => `
  with purge as materialized (
    select o.target ->> 'subscription' as subscription,
           o.at - (o.target ->> 'olderThanSeconds')::float8 * interval '1 second' + interval '1 hour' as resolved_before
      from ${schema}.outbox_operator_log o
     where $4::boolean and o.action = 'purge'
  )
  select l.subscription_id, coalesce(d.event_id, l.event_id), l.position
    from ${schema}.outbox_dead_letter l
    left join ${schema}.outbox_delivery d on d.id = l.position and d.subscription_id = l.subscription_id
   where not l.resolved and d.status is distinct from 'DEAD'
     and l.position between $1 and $2 and l.subscription_id = any ($3::int[])
     and (d.id is not null
          or not exists (select 1 from ${schema}.outbox_event e where e.event_id = l.event_id)
          or exists (select 1 from ${schema}.outbox_stream t where t.subscription_id = l.subscription_id))
  union
  select d.subscription_id, d.event_id, d.id
    from ${schema}.outbox_delivery d
    join ${schema}.outbox_subscription s on s.id = d.subscription_id
   where $4::boolean and d.status = 'DEAD' and d.id between $1 and $2 and d.subscription_id = any ($3::int[])
     and not exists (select 1 from ${schema}.outbox_dead_letter l
                      where l.event_id = d.event_id and l.subscription_id = d.subscription_id and l.position = d.id
                        and not (d.held and l.resolved))
     and (d.held or not exists (select 1 from purge p
                                 where coalesce(p.subscription, s.name) = s.name and d.updated_at < p.resolved_before))
   order by 3`

/** Event ids by subscription, of deliveries that do not agree with their dead letter. */
export async function disagreeingLetters(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionIds: readonly number[],
  { first, last }: PositionRange,
  hasDead: boolean,
): Promise<ReadonlyMap<number, readonly string[]>> {
  const rows = await rawQuery(client, lettersSql(schema), [first, last, subscriptionIds, hasDead])
  const found = new Map<number, string[]>()
  for (const [subscriptionId, eventId] of rows) {
    const known = found.get(Number(subscriptionId)) ?? []
    known.push(eventId as string)
    found.set(Number(subscriptionId), known)
  }
  return found
}
