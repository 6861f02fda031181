import pg from 'pg'
import { expect, test } from 'vitest'
import { createTestDatabase, createTestDatabaseWithTables, type TestDatabase } from './database.ts'
import { installTables } from './install-tables.ts'

/** What there is in a schema, each thing as the server would have it written. */
const CONTENTS = `
  with here as (select oid from pg_namespace where nspname = current_schema())
  select 'function' as kind, p.proname as name,
         pg_get_functiondef(p.oid) || coalesce(p.proacl::text, '') as text
    from pg_proc p join here on here.oid = p.pronamespace
  union all
  select 'relation', c.relname, concat_ws(' ', c.relkind, c.relpersistence, c.reloptions, c.relacl, c.reltuples)
    from pg_class c join here on here.oid = c.relnamespace
  union all
  select 'column', c.relname || '.' || a.attname, concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod),
         a.attnotnull, a.attidentity, a.attgenerated, a.attstattarget, pg_get_expr(d.adbin, d.adrelid))
    from pg_attribute a join pg_class c on c.oid = a.attrelid join here on here.oid = c.relnamespace
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
   where a.attnum > 0
  union all
  select 'index', c.relname, pg_get_indexdef(c.oid)
    from pg_class c join here on here.oid = c.relnamespace where c.relkind in ('i', 'I')
  union all
  select 'view', c.relname, pg_get_viewdef(c.oid)
    from pg_class c join here on here.oid = c.relnamespace where c.relkind = 'v'
  union all
  select 'constraint', k.conname, k.conrelid::regclass || ' ' || pg_get_constraintdef(k.oid)
    from pg_constraint k join here on here.oid = k.connamespace
  union all
  select 'trigger', t.tgname, concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled)
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join here on here.oid = c.relnamespace
   where not t.tgisinternal
  union all
  select 'bounds', c.relname, pg_get_expr(c.relpartbound, c.oid)
    from pg_class c join here on here.oid = c.relnamespace where c.relispartition and c.relkind = 'r'
  order by 1, 2, 3`

async function contentsOf({ pool, schema }: TestDatabase): Promise<readonly string[]> {
  const { rows } = await pool.query<{ kind: string; name: string; text: string }>(CONTENTS)
  return rows.map(({ kind, name, text }) => `${kind} ${name}: ${text.replaceAll(schema, 'SCHEMA')}`)
}

test('a copy of the template has what the migrations make, under its own name', async ({ skip }) => {
  await using made = await createTestDatabase()
  await installTables(made.pool, made.schema)
  await using copied = await createTestDatabaseWithTables()
  const isNewDay = (await dayOf(copied.pool)) !== (await dayOf(made.pool))
  skip(isNewDay, 'a day has begun since the template was partitioned')
  const contents = await contentsOf(copied)
  expect(contents).toEqual(await contentsOf(made))
  expect(contents.length).toBeGreaterThan(500)
  expect(await migrationsOf(copied.pool)).toEqual(await migrationsOf(made.pool))
})

/** Of partitioned tables the day on which they were, in a way. */
async function dayOf(pool: pg.Pool): Promise<unknown> {
  const { rows } = await pool.query('select rest_until from outbox_partitioning')
  return rows[0]?.rest_until
}

async function migrationsOf(pool: pg.Pool): Promise<readonly unknown[]> {
  const { rows } = await pool.query('select version, name, checksum from outbox_migration order by version')
  return rows
}

test('drop removes a copy, even from under a connection that was forgotten in a transaction', async () => {
  const database = await createTestDatabaseWithTables()
  const forgotten = new pg.Client({ connectionString: database.url })
  const cut = new Promise((resolve) => forgotten.on('error', resolve))
  await forgotten.connect()
  await forgotten.query('begin; lock table outbox_event')

  await database.drop()

  expect(await cut).toMatchObject({ code: '57P01' })
  const gone = new pg.Client({ connectionString: database.url })
  await expect(gone.connect()).rejects.toMatchObject({ code: '3D000' })
})
