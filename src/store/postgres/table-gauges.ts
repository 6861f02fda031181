import type { TableGauge } from '../gauge-store.ts'
import { type PgClient, rawQuery } from './client.ts'
import { type QuotedSchema, quoteLiteral } from './identifiers.ts'

/** The tables that grow with the traffic. */
const TABLES = ['outbox_event', 'outbox_delivery', 'outbox_dead_letter', 'outbox_inbox'] as const

// A table without partitions is not in its own partition tree.
const tablesSql = (schema: QuotedSchema): string => `
  select t.name, sum(pg_total_relation_size(r.oid)), sum(c.reltuples) filter (where c.reltuples >= 0),
         sum(pg_stat_get_tuples_deleted(r.oid))
    from (values ${TABLES.map((table) => `('${table}', ${regclass(schema, table)})`).join(', ')}) as t (name, root)
    cross join lateral (
      select t.root::oid as oid union select p.relid::oid from pg_partition_tree(t.root) p) r
    join pg_class c on c.oid = r.oid and c.relkind <> 'p'
   group by t.name
   order by t.name`

const regclass = (schema: QuotedSchema, table: string): string =>
  `${quoteLiteral(`${schema}.${table}`)}::regclass`

const oldestEventSql = (schema: QuotedSchema): string => `
  select extract(epoch from clock_timestamp() - e.created_at)::float8
    from ${schema}.outbox_event e order by e.xid limit 1`

/** How large the tables are, as the server keeps account of it: no row of them is read. */
export async function tableGauges(client: PgClient, schema: QuotedSchema): Promise<readonly TableGauge[]> {
  const rows = await rawQuery(client, tablesSql(schema), [])
  return rows.map(([table, bytes, estimatedRows, removedRows]) => ({
    table: table as string,
    bytes: Number(bytes),
    estimatedRows: estimatedRows === null ? null : Math.round(Number(estimatedRows)),
    removedRows: Number(removedRows),
  }))
}

/** How old the event of the oldest transaction is that is still kept: what retention has left. */
export async function oldestEventSeconds(client: PgClient, schema: QuotedSchema): Promise<number | null> {
  const [row] = await rawQuery(client, oldestEventSql(schema), [])
  return row === undefined ? null : Math.max(0, Number(row[0]))
}
