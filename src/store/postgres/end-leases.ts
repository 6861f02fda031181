import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const endLeasesSql = (schema: QuotedSchema): string => `
  delete from ${schema}.outbox_lease l where l.subscription_id = $1 and l.token = any ($2::bigint[])`

/** Forgets claims of which nothing is in hand any more. */
export async function endLeases(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionId: number,
  tokens: readonly string[],
): Promise<void> {
  await rawQuery(client, endLeasesSql(schema), [subscriptionId, tokens])
}
