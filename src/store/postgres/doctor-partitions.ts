import type { PartitionFacts } from '../doctor-facts.ts'
import { type PgClient, rawQuery } from './client.ts'
import { plainName, type QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

const partitionsSql = (schema: QuotedSchema): string => `
  select p.state, p.every, ${timeColumn('m.until')}, floor(extract(epoch from m.until - clock_timestamp()) / 86400)
    from ${schema}.outbox_partitioning p
   cross join lateral (
     select to_timestamp(coalesce(max(d.end_day), p.rest_until) * 86400.0) as until from ${schema}.outbox_period d) m`

// By name, as outbox_make_period gives them. One that is being detached takes nothing any more.
const comparedSql = (schema: QuotedSchema): string => `
  with divided as (select c.oid, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
                    where n.nspname = $1 and c.relname in ('outbox_event', 'outbox_delivery')),
  expected as (
    select d.relname || '_rest' as name from divided d
    union all
    select d.relname || to_char(to_timestamp(p.first_day * 86400.0) at time zone 'UTC', '_YYYYMMDD')
      from divided d cross join ${schema}.outbox_period p),
  attached as (
    select c.relname as name from divided d
      join pg_inherits i on i.inhparent = d.oid and not i.inhdetachpending
      join pg_class c on c.oid = i.inhrelid)
  select e.name, a.name from expected e full join attached a using (name)
   where e.name is null or a.name is null
   order by 1, 2`

/** How far partitions are made ahead, and whether they are those that were made; null where the tables are plain. */
export async function partitionFacts(client: PgClient, schema: QuotedSchema): Promise<PartitionFacts | null> {
  const [row] = await rawQuery(client, partitionsSql(schema), [])
  if (row === undefined) return null
  const isDivided = row[0] === 'partitioned'
  const compared = isDivided ? await rawQuery(client, comparedSql(schema), [plainName(schema)]) : []
  return {
    state: row[0] as PartitionFacts['state'],
    everyDays: Number(row[1]),
    madeUntil: dateOf(row[2] as string),
    daysAhead: Number(row[3]),
    missing: compared.flatMap(([expected = null]) => expected ?? []),
    unexpected: compared.flatMap(([, attached = null]) => attached ?? []),
  }
}
