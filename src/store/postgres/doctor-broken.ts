import type { BrokenObject } from '../doctor-facts.ts'
import { type PgClient, rawQuery } from './client.ts'
import { plainName, type QuotedSchema } from './identifiers.ts'
import type { Migration } from './migration-files.ts'

/** What the steps make and, taken together, leave in place. */
interface ExpectedObjects {
  readonly indexes: readonly string[]
  readonly triggers: readonly string[]
}

// The steps themselves are the list of what has to be there: no second one can be forgotten.
function expectedObjects(migrations: readonly Migration[]): ExpectedObjects {
  const text = migrations.map(({ sql }) => withoutComments(sql)).join('\n')
  const gone = new Set(namesIn(text, /\bdrop (?:index|trigger)(?: if exists)? (?:\{schema\}\.)?(\w+)/gi))
  const staying = (pattern: RegExp): readonly string[] =>
    namesIn(text, pattern).filter((name) => !gone.has(name))
  return {
    indexes: staying(/\bcreate (?:unique )?index (?:concurrently )?(?:if not exists )?(\w+)\s+on\b/gi),
    triggers: staying(/\bcreate (?:or replace )?(?:constraint )?trigger (\w+)/gi),
  }
}

function withoutComments(sql: string): string {
  return sql.replaceAll(/^\s*--.*$/gm, '')
}

function namesIn(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, name]) => name as string)
}

// An index that was left by a failed CREATE INDEX CONCURRENTLY is there, and not used. A trigger that is off for the whole
// of a divided table is off for its partitions too, and on again with it.
const brokenSql = `
  with tables as (
    select c.oid, c.relname, format('%s.%I', c.relnamespace::regnamespace, c.relname) as quoted from pg_class c
     where c.relnamespace = (select n.oid from pg_namespace n where n.nspname = $1) and c.relkind in ('r', 'p')
       and c.relname like 'outbox\\_%'),
  indexes as (
    select i.relname, x.indrelid, x.indisprimary, x.indisvalid and x.indisready as is_sound
      from tables t join pg_index x on x.indrelid = t.oid join pg_class i on i.oid = x.indexrelid)
  select 'index', w.name, 'missing', null from unnest($2::text[]) w(name)
   where not exists (select 1 from indexes i where i.relname = w.name)
  union all
  select 'index', t.relname || '_pkey', 'missing', null from tables t
   where not exists (select 1 from indexes i where i.indrelid = t.oid and i.indisprimary)
  union all
  select 'index', i.relname, 'invalid', null from indexes i where not i.is_sound
  union all
  select 'trigger', w.name, 'missing', null from unnest($3::text[]) w(name)
   where not exists (select 1 from pg_trigger g join tables t on t.oid = g.tgrelid where g.tgname = w.name)
  union all
  select 'trigger', g.tgname, 'disabled', t.quoted from pg_trigger g join tables t on t.oid = g.tgrelid
   where g.tgname = any ($3::text[]) and g.tgenabled in ('D', 'R')
     and not exists (select from pg_trigger w where w.oid = g.tgparentid and w.tgenabled = g.tgenabled)
  order by 1, 2, 4`

/** Indexes and triggers of ours that are missing or do not work. */
export async function brokenObjects(
  client: PgClient,
  schema: QuotedSchema,
  migrations: readonly Migration[],
): Promise<readonly BrokenObject[]> {
  const { indexes, triggers } = expectedObjects(migrations)
  const rows = await rawQuery(client, brokenSql, [plainName(schema), indexes, triggers])
  return rows.map(([kind, name, problem, table = null]) => ({
    kind: kind as BrokenObject['kind'],
    name: name as string,
    problem: problem as BrokenObject['problem'],
    table,
  }))
}
