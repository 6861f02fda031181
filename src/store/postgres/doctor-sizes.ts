import type { TableFacts } from '../doctor-facts.ts'
import { type PgClient, rawQuery } from './client.ts'
import { plainName, type QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

// A row is its header of 24 bytes, a line pointer of 4, and its columns by their average width. An estimate: pgstattuple
// would read the whole table.
const sizesSql = `
  select format('%I.%I', t.schemaname, t.relname), t.n_live_tup, t.n_dead_tup, pg_relation_size(c.oid),
         case when c.reltuples >= 0 and w.width is not null
              then greatest(0, pg_relation_size(c.oid) - (c.reltuples * (28 + w.width))::bigint) end,
         ${timeColumn('greatest(t.last_vacuum, t.last_autovacuum)')},
         current_setting('autovacuum') = 'on'
           and not coalesce(c.reloptions && array['autovacuum_enabled=false', 'autovacuum_enabled=off'], false)
    from pg_stat_user_tables t
    join pg_class c on c.oid = t.relid
    left join lateral (
      select sum((1 - p.null_frac) * p.avg_width) as width from pg_stats p
       where p.schemaname = t.schemaname and p.tablename = t.relname) w on true
   where t.schemaname = $1 and t.relname like 'outbox\\_%'
   order by t.relname`

/** How large our tables are, and how much of them is waste. From statistics: it reads none of the tables. */
export async function tableSizes(client: PgClient, schema: QuotedSchema): Promise<readonly TableFacts[]> {
  const rows = await rawQuery(client, sizesSql, [plainName(schema)])
  return rows.map(([table, live, dead, bytes, wasted = null, lastVacuum = null, autovacuum]) => ({
    table: table as string,
    liveTuples: Number(live),
    deadTuples: Number(dead),
    bytes: Number(bytes),
    wastedBytes: wasted === null ? null : Number(wasted),
    lastVacuum: lastVacuum === null ? null : dateOf(lastVacuum),
    autovacuum: autovacuum === 't',
  }))
}
