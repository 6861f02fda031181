import type { KnownSubscription } from '../inspect-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// A name that was retired may have been given again.
const knownSql = (schema: QuotedSchema): string => `
  select s.name, bool_and(s.state = 'retired') from ${schema}.outbox_subscription s group by s.name order by s.name`

/** The name of every subscription that there is or was. */
export async function knownSubscriptions(
  pool: PgPool,
  schema: QuotedSchema,
): Promise<readonly KnownSubscription[]> {
  const rows = await withClient(pool, (client) => rawQuery(client, knownSql(schema), []))
  return rows.map(([name, retired]) => ({ name: name as string, retired: retired === 't' }))
}
