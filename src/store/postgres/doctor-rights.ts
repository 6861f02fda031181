import type { SurplusRight } from '../doctor-facts.ts'
import { type PgClient, rawQuery } from './client.ts'
import { plainName, type QuotedSchema } from './identifiers.ts'

const ours = `c.relnamespace = (select n.oid from pg_namespace n where n.nspname = $1) and c.relname like 'outbox\\_%'`

const unreadableSql = `
  select c.relname from pg_class c
   where ${ours} and c.relkind in ('r', 'p') and not c.relispartition
     and not (has_schema_privilege(c.relnamespace, 'usage') and has_table_privilege(c.oid, 'select'))
   order by 1`

/** Tables of ours that the connected role may not read. Partitions are read by the name of the whole. */
export async function unreadableTables(client: PgClient, schema: QuotedSchema): Promise<readonly string[]> {
  const rows = await rawQuery(client, unreadableSql, [plainName(schema)])
  return rows.map(([table]) => table as string)
}

// What is open to everybody, and who but the owner could change what is written once or remove anything. The functions
// that run with their owner's rights are the doors in that wall. Names are as SQL takes them, whatever the search_path of
// whoever takes the right back: regprocedure names the schema only where it is not on that of this session.
const surplusSql = `
  select coalesce(quote_ident(r.rolname), 'public'), lower(a.privilege_type),
         format('%s.%I', c.relnamespace::regnamespace, c.relname)
    from pg_class c cross join lateral aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
   where ${ours} and a.grantee <> c.relowner and c.relkind in ('r', 'p', 'S')
     and (a.grantee = 0 or a.privilege_type in ('TRUNCATE', 'TRIGGER')
          or (c.relname in ('outbox_event', 'outbox_operator_log', 'outbox_operator_log_head', 'outbox_scope',
                            'outbox_export', 'outbox_export_head')
              and a.privilege_type in ('UPDATE', 'DELETE'))
          or (c.relname in ('outbox_delivery', 'outbox_dead_letter') and a.privilege_type = 'DELETE'))
  union all
  select 'public', 'execute',
         case when pg_function_is_visible(p.oid) then p.pronamespace::regnamespace || '.' else '' end
           || p.oid::regprocedure
    from pg_proc p cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
   where p.pronamespace = (select n.oid from pg_namespace n where n.nspname = $1) and p.proname like 'outbox\\_%'
     and p.prosecdef and a.grantee = 0
   order by 1, 3, 2`

/** Rights on our objects that somebody has and no role of ours needs. */
export async function surplusRights(
  client: PgClient,
  schema: QuotedSchema,
): Promise<readonly SurplusRight[]> {
  const rows = await rawQuery(client, surplusSql, [plainName(schema)])
  return rows.map(([role, right, object]) => ({
    role: role as string,
    right: right as string,
    object: object as string,
  }))
}
