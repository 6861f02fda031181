import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// now(), not clock_timestamp(): the rows of a key become due at one instant, so that they are read in position order.
const unparkSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_delivery d
     set next_retry_at = now(), updated_at = clock_timestamp()
   where d.subscription_id = $1 and d.lane = any ($2::smallint[]) and d.ordering_key = any ($3::text[])
     and d.held and d.status = 'PENDING' and d.next_retry_at = 'infinity'`

/** Lets the parked deliveries of these ordering keys be claimed again. */
export async function unpark(
  pool: PgPool,
  schema: QuotedSchema,
  subscriptionId: number,
  keys: readonly { readonly lane: number; readonly key: string }[],
): Promise<void> {
  const values = [subscriptionId, keys.map(({ lane }) => lane), keys.map(({ key }) => key)]
  await withClient(pool, (client) => rawQuery(client, unparkSql(schema), values))
}

// Parked behind nothing: what it waited for was settled while it was being parked. Always safe to let go, since a
// claim looks at what stands before it on its key anyway.
const unparkStrandedSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_delivery d
     set next_retry_at = now(), updated_at = clock_timestamp()
   where d.subscription_id = $1 and d.status = 'PENDING' and d.held and not d.suspect
     and d.next_retry_at = 'infinity'
     and (select h.id from ${schema}.outbox_delivery h
           where h.subscription_id = d.subscription_id and h.lane = d.lane and h.ordering_key = d.ordering_key
             and h.held and h.id < d.id
           limit 1) is null`

/** Lets go what is parked although nothing stands before it any more. */
export async function unparkStranded(
  pool: PgPool,
  schema: QuotedSchema,
  subscriptionId: number,
): Promise<void> {
  await withClient(pool, (client) => rawQuery(client, unparkStrandedSql(schema), [subscriptionId]))
}
