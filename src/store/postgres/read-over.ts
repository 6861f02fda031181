import type { DeliveryKey } from '../../delivery/delivery.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// By primary key.
const readOverSql = (schema: QuotedSchema): string => `
  select d.subscription_id, d.id from ${schema}.outbox_delivery d
   where d.id = any ($2::bigint[]) and d.subscription_id = any ($1::int[]) and d.status in ('DONE', 'DEAD')`

/** Which of these are DONE or DEAD, whoever wrote it. */
export async function readOver(
  client: PgClient,
  schema: QuotedSchema,
  deliveries: readonly DeliveryKey[],
): Promise<readonly DeliveryKey[]> {
  if (deliveries.length === 0) return []
  const rows = await rawQuery(client, readOverSql(schema), [
    [...new Set(deliveries.map(({ subscriptionId }) => subscriptionId))],
    deliveries.map(({ position }) => position),
  ])
  const over = new Set(rows.map((row) => row.join('/')))
  return deliveries.filter(({ subscriptionId, position }) => over.has(`${subscriptionId}/${position}`))
}
