import type { AuditReport, BrokenLink, ChainReport } from '../proof-store.ts'
import { type PgClient, type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

/** A table whose rows are chained, the row that is its end, and the function that hashes a row. */
interface Chain {
  readonly table: string
  readonly head: string
  readonly hash: string
}

const OPERATOR_LOG: Chain = {
  table: 'outbox_operator_log',
  head: 'outbox_operator_log_head',
  hash: 'outbox_operator_hash',
}
const EXPORTS: Chain = { table: 'outbox_export', head: 'outbox_export_head', hash: 'outbox_export_hash' }

// One statement, one snapshot: whoever adds an entry meanwhile adds it with its head, or is not seen at all.
const followSql = (schema: QuotedSchema, { table, head, hash }: Chain): string => `
  with head as (select h.entries, h.hash from ${schema}.${head} h),
  chain as materialized (
    select o.entry, o.id, o.hash, o.previous_hash,
           coalesce(lag(o.entry) over by_entry, 0) + 1 as expected,
           coalesce(lag(o.hash) over by_entry, repeat('0', 64)) as hash_before,
           ${schema}.${hash}(o) as computed
      from ${schema}.${table} o
    window by_entry as (order by o.entry)),
  last as (select coalesce(max(c.entry), 0) as entry from chain c),
  broken as (
    select case when c.entry <> c.expected then c.expected else c.entry end as entry,
           case when c.entry = c.expected then c.id end as id,
           case when c.entry <> c.expected then 'missing'
                when c.previous_hash <> c.hash_before then 'unlinked'
                when c.hash <> c.computed then 'changed'
                when c.entry > h.entries then 'added'
                when c.entry = h.entries and c.hash <> h.hash then 'changed' end as problem,
           c.hash_before
      from chain c cross join head h
    union all
    select l.entry + 1, null, 'cut-off',
           coalesce((select c.hash from chain c where c.entry = l.entry), repeat('0', 64))
      from last l cross join head h where l.entry < h.entries)
  select (select count(*) from chain), b.entry, b.id, b.problem, coalesce(b.hash_before, h.hash)
    from head h left join lateral (
      select * from broken b where b.problem is not null order by b.entry limit 1) b on true`

/** Follows the chains of the operator log and of the exports, and names the first link of each that does not hold. */
export async function verifyChains(pool: PgPool, schema: QuotedSchema): Promise<AuditReport> {
  return withClient(pool, async (client) => {
    const log = await follow(client, schema, OPERATOR_LOG)
    const exports = await follow(client, schema, EXPORTS)
    return { ...log, holds: log.holds && exports.holds, exports }
  })
}

async function follow(client: PgClient, schema: QuotedSchema, chain: Chain): Promise<ChainReport> {
  const [row] = await rawQuery(client, followSql(schema, chain), [])
  const [entries, entry = null, id = null, problem, hash] = row ?? []
  const broken = entry === null ? null : { entry, id, problem: problem as BrokenLink['problem'] }
  return { holds: broken === null, entries: Number(entries), hash: hash as string, broken }
}
