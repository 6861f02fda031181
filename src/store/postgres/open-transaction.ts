import type { OpenTransaction } from '../../delivery/open-transaction.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// Of the whole server, all databases: transaction ids are. A role without pg_read_all_stats sees the process of others
// and its transaction id, not since when.
const oldestSql = (schema: QuotedSchema): string => `
  select t.pid, t.name, extract(epoch from clock_timestamp() - t.since)::float8
    from (select a.pid, nullif(a.application_name, '') as name, a.xact_start as since, age(a.backend_xid) as age
            from pg_stat_activity a
           where a.backend_xid is not null and a.pid <> pg_backend_pid()
          union all
          select null, p.gid, p.prepared, age(p.transaction) from pg_prepared_xacts p) t
   where exists (select 1 from ${schema}.outbox_subscription s
                  where s.state = 'joining' and s.barrier is not null
                    and s.barrier >= pg_snapshot_xmin(pg_current_snapshot()))
   order by t.age desc
   limit 1`

/** The oldest transaction that a joining subscription waits for, or null when none waits. */
export async function openTransaction(pool: PgPool, schema: QuotedSchema): Promise<OpenTransaction | null> {
  const [row] = await withClient(pool, (client) => rawQuery(client, oldestSql(schema), []))
  if (row === undefined) return null
  const [pid = null, name = null, seconds = null] = row
  return {
    pid: pid === null ? null : Number(pid),
    name,
    seconds: seconds === null ? null : Math.max(0, Number(seconds)),
  }
}
