import type { XminHolder } from '../doctor-facts.ts'
import { type PgClient, rawQuery } from './client.ts'

const MOST_HOLDERS = 20

// Of the whole server: a transaction with an id of its own holds everybody's horizon. Slots have no time, nor have
// standbys: one that is connected for weeks reports another horizon every few seconds. A role without pg_read_all_stats is not told since when
// others are at it.
const holdersSql = `
  select h.* from (
    select 'session' as kind, nullif(a.application_name, '') as name, a.pid,
           nullif(a.query, '<insufficient privilege>') as query,
           extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds,
           greatest(age(a.backend_xmin), age(a.backend_xid)) as transactions
      from pg_stat_activity a
     where coalesce(a.backend_xmin, a.backend_xid) is not null and a.pid <> pg_backend_pid()
       and a.backend_type not in ('walsender', 'autovacuum worker', 'parallel worker')
    union all
    select 'prepared', p.gid, null, null, extract(epoch from clock_timestamp() - p.prepared)::float8,
           age(p.transaction)
      from pg_prepared_xacts p
    union all
    select 'slot', s.slot_name, s.active_pid, null, null, greatest(age(s.xmin), age(s.catalog_xmin))
      from pg_replication_slots s where coalesce(s.xmin, s.catalog_xmin) is not null
    union all
    select 'standby', nullif(r.application_name, ''), r.pid, null, null, age(r.backend_xmin)
      from pg_stat_replication r where r.backend_xmin is not null) h
   order by h.transactions desc, h.seconds desc nulls last
   limit ${MOST_HOLDERS}`

/** Who keeps the server from cleaning up, the oldest first. */
export async function xminHolders(client: PgClient): Promise<readonly XminHolder[]> {
  const rows = await rawQuery(client, holdersSql, [])
  return rows.map(([kind, name = null, pid = null, query = null, seconds = null, transactions]) => ({
    kind: kind as XminHolder['kind'],
    name,
    pid: pid === null ? null : Number(pid),
    query,
    seconds: seconds === null ? null : Math.max(0, Number(seconds)),
    transactions: Number(transactions),
  }))
}

const seesSql = `select pg_has_role('pg_read_all_stats', 'usage')`

/** Whether the connected role is told about the sessions of others. */
export async function seesAllSessions(client: PgClient): Promise<boolean> {
  const [row] = await rawQuery(client, seesSql, [])
  return row?.[0] === 't'
}
