import type { RecoverReport } from '../queue-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { returnLapsed } from './return-lapsed.ts'

const countSuspectsSql = (schema: QuotedSchema): string => `
  select d.subscription_id, count(*) from ${schema}.outbox_delivery d
   where d.subscription_id = any ($1::int[]) and d.status = 'PENDING' and d.suspect
     and d.next_retry_at <= clock_timestamp()
   group by d.subscription_id`

/** Returns what vanished workers left and counts the suspects that are due. */
export async function recover(
  pool: PgPool,
  schema: QuotedSchema,
  subscriptionIds: readonly number[],
): Promise<RecoverReport> {
  return withClient(pool, async (client) => {
    const lapsed = await returnLapsed(client, schema, subscriptionIds)
    const suspects = await rawQuery(client, countSuspectsSql(schema), [subscriptionIds])
    return { ...lapsed, suspects: new Map(suspects.map(([id, count]) => [Number(id), Number(count)])) }
  })
}
