import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import type { PositionRange } from './verify-window.ts'

const countSql = (schema: QuotedSchema): string => `
  select s.id, count(*) from ${schema}.outbox_archived a cross join lateral unnest(a.subscription_ids) as s(id)
   where a.archive_id is not null and a.position between $1 and $2 and s.id = any ($3::int[])
   group by s.id`

/** How many events of each subscription were archived. */
export async function countArchived(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionIds: readonly number[],
  { first, last }: PositionRange,
): Promise<ReadonlyMap<number, number>> {
  const rows = await rawQuery(client, countSql(schema), [first, last, subscriptionIds])
  return new Map(rows.map(([id, count]) => [Number(id), Number(count)]))
}

const missingSql = (schema: QuotedSchema): string => `
  select s.id, m.event_id from ${schema}.outbox_missing_archived($1, $2) m
   cross join lateral unnest(m.subscription_ids) as s(id)`

/** Event ids by subscription, of those that were archived and are not in their archive. */
export async function missingArchived(
  client: PgClient,
  schema: QuotedSchema,
  { first, last }: PositionRange,
  hasArchived: boolean,
): Promise<ReadonlyMap<number, readonly string[]>> {
  const found = new Map<number, string[]>()
  if (!hasArchived) return found
  for (const [id, eventId] of await rawQuery(client, missingSql(schema), [first, last])) {
    const known = found.get(Number(id)) ?? []
    known.push(eventId as string)
    found.set(Number(id), known)
  }
  return found
}
