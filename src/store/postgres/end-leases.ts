import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// What somebody has locked is left to lapse: no result may wait for it.
const endLeasesSql = (schema: QuotedSchema): string => `
  delete from ${schema}.outbox_lease d
   where d.ctid = any (array(
     select l.ctid
       from unnest($1::int[], $2::bigint[]) as w(subscription_id, token)
      cross join lateral (
        select l.ctid from ${schema}.outbox_lease l
         where l.subscription_id = w.subscription_id and l.token = w.token
           for update skip locked) l))`

/** Forgets the claims that these were the last of. */
export async function endLeases(
  pool: PgPool,
  schema: QuotedSchema,
  last: readonly ClaimedDelivery[],
): Promise<void> {
  const values = [last.map(({ subscriptionId }) => subscriptionId), last.map(({ lease }) => lease.token)]
  await withClient(pool, (client) => rawQuery(client, endLeasesSql(schema), values))
}
