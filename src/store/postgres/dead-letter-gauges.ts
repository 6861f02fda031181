import type { DeadLetterGauge } from '../gauge-store.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const deadLettersSql = (schema: QuotedSchema): string => `
  select l.subscription, l.stream, l.event_type, count(*)
    from (select l.subscription, l.stream, l.event_type from ${schema}.outbox_dead_letter l
           where not l.resolved order by l.id desc limit $1) l
   group by l.subscription, l.stream, l.event_type`

/** The dead letters that wait for a person, the newest of them up to the limit. */
export async function deadLetterGauges(
  client: PgClient,
  schema: QuotedSchema,
  countLimit: number,
): Promise<readonly DeadLetterGauge[]> {
  const rows = await rawQuery(client, deadLettersSql(schema), [countLimit])
  return rows.map(([subscription, stream, eventType, count]) => ({
    subscription: subscription as string,
    stream: stream as string,
    eventType: eventType as string,
    count: Number(count),
  }))
}
