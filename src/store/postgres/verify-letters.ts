import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import type { PositionRange } from './verify-window.ts'

// DEAD deliveries are not indexed: they are looked for only where there are any. Once letters have been purged, one
// that is not there tells nothing.
const lettersSql = (schema: QuotedSchema): string => `
  select d.subscription_id, d.event_id, d.id
    from ${schema}.outbox_dead_letter l
    join ${schema}.outbox_delivery d on d.id = l.position and d.subscription_id = l.subscription_id
   where not l.resolved and d.status <> 'DEAD' and d.id between $1 and $2 and d.subscription_id = any ($3::int[])
  union
  select d.subscription_id, d.event_id, d.id
    from ${schema}.outbox_delivery d
   where $4::boolean and d.status = 'DEAD' and d.id between $1 and $2 and d.subscription_id = any ($3::int[])
     and not exists (select 1 from ${schema}.outbox_dead_letter l
                      where l.event_id = d.event_id and l.subscription_id = d.subscription_id and l.position = d.id)
     and not exists (select 1 from ${schema}.outbox_operator_log o where o.action like '%purge%')
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
