import type { PgClient } from './client.ts'
import { rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// Walks outbox_delivery_leased: the rows of one token are one claim's. The token is the guard: whoever lost the lease
// settles nothing.
const settleDoneSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_delivery d
     set status = 'DONE', processed_at = clock_timestamp(), updated_at = clock_timestamp(), suspect = false,
         locked_by = null, locked_until = null, lease_token = null
   where d.subscription_id = $1 and d.lease_token = $2 and d.id = any ($3::bigint[]) and d.status = 'PROCESSING'
  returning d.id`

/** Makes deliveries of one claim DONE. Returns the positions that were still leased under its token. */
export async function settleDone(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionId: number,
  token: string,
  positions: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await rawQuery(client, settleDoneSql(schema), [subscriptionId, token, positions])
  return new Set(rows.map((row) => row[0] as string))
}
