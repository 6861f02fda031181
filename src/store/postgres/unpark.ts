import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// now(), not clock_timestamp(): the rows of a key become due at one instant, so that they are read in position order.
// A row that somebody has locked is left to unpark-stranded.ts: other keys must not wait for it.
const unparkSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_delivery d
     set next_retry_at = now(), updated_at = clock_timestamp()
   where d.ctid = any (array(
     select p.ctid from ${schema}.outbox_delivery p
      where p.subscription_id = $1 and p.lane = any ($2::smallint[]) and p.ordering_key = any ($3::text[])
        and p.held and p.status = 'PENDING' and p.next_retry_at = 'infinity'
        for update skip locked))`

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
