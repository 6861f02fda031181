import type pg from 'pg'

/** What every table holds, by schema and name, so that a difference names its table. */
export type Snapshot = Readonly<Record<string, string>>

// No table is left out: nothing runs beside the rows, so that none has a reason to change. They are those of the catalogue,
// so that none of a later migration is forgotten, and of all schemas, since a refused input may make none either. A
// partitioned table has its rows in its parts. Only query_to_xml runs a text that a statement has made: all tables are read
// by one.
const SQL = `
  select n.nspname as schema, c.relname as name,
         case when c.oid is not null then query_to_xml(format(
           'select count(*) as rows, md5(string_agg(t::text, chr(10) order by t::text)) as hash from %I.%I t',
           n.nspname, c.relname), true, true, '')::text end as held
    from pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relkind = 'r'
   where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
   order by 1, 2`

/** Reads all tables of the test's database. */
export async function snapshotOf(pool: pg.Pool): Promise<Snapshot> {
  const { rows } = await pool.query(SQL)
  return Object.fromEntries(rows.map(({ schema, name, held }) => [`${schema}.${name ?? ''}`, held ?? '']))
}
