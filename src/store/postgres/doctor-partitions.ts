import type { PartitionFacts } from '../doctor-facts.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

const partitionsSql = (schema: QuotedSchema): string => `
  select p.state, p.every, ${timeColumn('m.until')}, floor(extract(epoch from m.until - clock_timestamp()) / 86400)
    from ${schema}.outbox_partitioning p
   cross join lateral (
     select to_timestamp(coalesce(max(d.end_day), p.rest_until) * 86400.0) as until from ${schema}.outbox_period d) m`

/** How far partitions are made ahead; null where the tables are plain. */
export async function partitionFacts(client: PgClient, schema: QuotedSchema): Promise<PartitionFacts | null> {
  const [row] = await rawQuery(client, partitionsSql(schema), [])
  if (row === undefined) return null
  return {
    state: row[0] as PartitionFacts['state'],
    everyDays: Number(row[1]),
    madeUntil: dateOf(row[2] as string),
    daysAhead: Number(row[3]),
  }
}
