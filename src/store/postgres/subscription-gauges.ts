import type { SubscriptionGauge } from '../gauge-store.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const subscriptionsSql = (schema: QuotedSchema): string => `
  select s.name, s.state, s.paused_at is not null,
         (select count(*) from ${schema}.outbox_worker w
           where w.until > clock_timestamp() and s.id = any (w.subscription_ids))
    from ${schema}.outbox_subscription s
   where s.state <> 'retired'`

/** Every subscription that is not retired, and how many live workers serve it. */
export async function subscriptionGauges(
  client: PgClient,
  schema: QuotedSchema,
): Promise<readonly SubscriptionGauge[]> {
  const rows = await rawQuery(client, subscriptionsSql(schema), [])
  return rows.map(([subscription, state, paused, workers]) => ({
    subscription: subscription as string,
    state: state as SubscriptionGauge['state'],
    paused: paused === 't',
    workers: Number(workers),
  }))
}
