import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { quoteSchema } from '../../../src/store/postgres/identifiers.ts'
import { type MigrateReport, migrateUp } from '../../../src/store/postgres/migrate.ts'
import { readMigrations } from '../../../src/store/postgres/migration-files.ts'
import { migrationSql } from '../../../src/store/postgres/migration-sql.ts'
import { assertSchemaCurrent, migrationStatus } from '../../../src/store/postgres/migration-status.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { column, one, refusal } from './fixtures.ts'

let db: TestDatabase

beforeEach(async () => {
  db = await createTestDatabase({ connections: 25 })
})
afterEach(async () => {
  await db.drop()
})

const latest = async (): Promise<number> => (await readMigrations()).at(-1)?.version as number

/** Runs `work` with a schema of any name, which is dropped afterwards. */
async function withSchema(name: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } finally {
    await db.pool.query(`drop schema if exists ${quoteSchema(name)} cascade`)
  }
}

/** Runs `work` on connections that begin with other settings. */
async function withSettings(
  database: TestDatabase,
  settings: string,
  work: (pool: pg.Pool) => Promise<void>,
): Promise<void> {
  const url = new URL(database.url)
  url.searchParams.set('options', settings)
  const pool = new pg.Pool({ connectionString: url.href })
  try {
    await work(pool)
  } finally {
    await pool.end()
  }
}

describe('migrating', () => {
  test('the first run applies every migration and records version, name and checksum', async () => {
    const report = await migrateUp(db.pool, { schema: db.schema })
    const migrations = await readMigrations()
    expect(report.schemaVersion).toBe(await latest())
    expect(report.applied).toEqual(migrations.map(({ version, name }) => ({ version, name })))
    const { rows } = await db.pool.query(
      'select version, name, checksum from outbox_migration order by version',
    )
    expect(rows).toEqual(migrations.map(({ version, name, checksum }) => ({ version, name, checksum })))
  })

  test('a second run changes nothing', async () => {
    await migrateUp(db.pool, { schema: db.schema })
    const before = await one(db.pool, 'select max(applied_at)::text from outbox_migration')
    expect((await migrateUp(db.pool, { schema: db.schema })).applied).toEqual([])
    expect(await one(db.pool, 'select max(applied_at)::text from outbox_migration')).toBe(before)
  })

  test('of twenty processes that migrate at once, one applies and all succeed', async () => {
    const runs = Array.from({ length: 20 }, () => migrateUp(db.pool, { schema: db.schema }))
    const reports = await Promise.all(runs)
    const applied = reports.filter((report: MigrateReport) => report.applied.length > 0)
    expect(applied).toHaveLength(1)
    expect(new Set(reports.map(({ schemaVersion }) => schemaVersion))).toEqual(new Set([await latest()]))
  })

  test('a migration that fails leaves nothing behind', async () => {
    // A table in the way of the second migration's functions would be too kind: the first one must be undone as well.
    await db.pool.query(
      `create function ${db.schema}.outbox_fan_out() returns int language sql as 'select 1'`,
    )
    expect(await refusal(migrateUp(db.pool, { schema: db.schema }))).toBe('42723')
    expect(await one(db.pool, 'select to_regclass($1)', [`${db.schema}.outbox_event`])).toBeNull()
    expect(await one(db.pool, 'select to_regclass($1)', [`${db.schema}.outbox_migration`])).toBeNull()
  })

  test('the search path of the session does not decide what the tables are bound to', async () => {
    await using other = await createTestDatabase()
    await other.pool.query(
      `create function ${other.schema}.clock_timestamp() returns timestamptz language sql as $$ select to_timestamp(0) $$`,
    )
    await withSettings(other, `-c search_path=${other.schema},pg_catalog`, async (pool) => {
      expect((await migrateUp(pool, { schema: other.schema })).applied).not.toEqual([])
    })
    await other.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload) values ('a', 'b', 'c', '1', '{}')`,
    )
    expect(await one(other.pool, `select created_at > now() - interval '1 hour' from outbox_event`)).toBe(
      true,
    )
  })

  test('a statement timeout of the session does not end the wait for another process', async () => {
    const first = await db.pool.connect()
    await first.query('begin')
    await first.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
      `commitpost.migrate.${db.schema}`,
    ])
    await withSettings(db, '-c statement_timeout=100', async (pool) => {
      const second = migrateUp(pool, { schema: db.schema })
      await sleep(300)
      await first.query('rollback')
      expect((await second).applied).not.toEqual([])
    })
    first.release()
  })

  test('a role without rights to create anything may run it when there is nothing to do', async () => {
    await migrateUp(db.pool, { schema: db.schema })
    const role = `${db.schema}_reader`
    await db.pool.query(`create role ${role} login; grant usage on schema ${db.schema} to ${role};
      grant select on ${db.schema}.outbox_migration to ${role}`)
    const url = new URL(inject('databaseUrl'))
    url.username = role
    const pool = new pg.Pool({ connectionString: url.href })
    try {
      expect((await migrateUp(pool, { schema: db.schema })).applied).toEqual([])
      expect(await refusal(migrateUp(pool, { schema: `${db.schema}_other` }))).toBe('42501')
    } finally {
      await pool.end()
      await db.pool.query(`drop owned by ${role}; drop role ${role}`)
    }
  })
})

describe('what a migration refuses', () => {
  test('a schema that may not be created is asked for by name', async () => {
    const missing = `${db.schema}_missing`
    await expect(migrateUp(db.pool, { schema: missing, createSchema: false })).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
      message: expect.stringContaining(missing),
    })
  })

  test('a schema newer than the code', async () => {
    await migrateUp(db.pool, { schema: db.schema })
    await db.pool.query(`insert into outbox_migration (version, name, checksum) values (9999, 'future', 'x')`)
    const needed = await latest()
    await expect(migrateUp(db.pool, { schema: db.schema })).rejects.toMatchObject({
      code: 'SCHEMA_VERSION',
      found: 9999,
      needed,
      message: expect.stringMatching(/upgrade the commitpost package/i),
    })
  })

  test('an applied migration whose text is another one now', async () => {
    await migrateUp(db.pool, { schema: db.schema })
    await db.pool.query(`update outbox_migration set checksum = 'edited' where version = 1`)
    await expect(migrateUp(db.pool, { schema: db.schema })).rejects.toMatchObject({
      code: 'SCHEMA_VERSION',
      message: expect.stringMatching(/Migration 1 \(core\) is not the one that was applied/),
    })
  })
})

describe('the status', () => {
  test('names what is missing, behind, current and ahead', async () => {
    const options = { schema: db.schema }
    const codeVersion = await latest()
    const missing = await migrationStatus(db.pool, options)
    expect(missing).toMatchObject({ state: 'missing', schemaVersion: null, codeVersion, applied: [] })
    expect(missing.pending).toHaveLength((await readMigrations()).length)
    expect(await migrationStatus(db.pool, { schema: 'no such schema' })).toMatchObject({ state: 'missing' })

    await migrateUp(db.pool, options)
    const current = await migrationStatus(db.pool, options)
    expect(current).toMatchObject({ state: 'current', schemaVersion: codeVersion, pending: [] })
    expect(current.applied[0]).toMatchObject({ version: 1, name: 'core', appliedAt: expect.any(Date) })

    await db.pool.query('delete from outbox_migration where version = $1', [codeVersion])
    expect(await migrationStatus(db.pool, options)).toMatchObject({
      state: 'behind',
      schemaVersion: (await readMigrations()).at(-2)?.version,
      pending: [{ version: codeVersion }],
    })

    await db.pool.query(`insert into outbox_migration (version, name, checksum) values (9999, 'future', 'x')`)
    expect(await migrationStatus(db.pool, options)).toMatchObject({ state: 'ahead', schemaVersion: 9999 })
  })

  test('a worker learns which command to run, and does not run on a schema newer than its code', async () => {
    const schema = quoteSchema(db.schema)
    await expect(assertSchemaCurrent(db.pool, schema)).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
      schema: db.schema,
      message: expect.stringContaining('commitpost migrate up'),
    })
    await migrateUp(db.pool, { schema: db.schema })
    await expect(assertSchemaCurrent(db.pool, schema)).resolves.toBeUndefined()
    await db.pool.query(`insert into outbox_migration (version, name, checksum) values (9999, 'future', 'x')`)
    await expect(assertSchemaCurrent(db.pool, schema)).rejects.toMatchObject({ found: 9999 })
  })
})

describe('the printed script', () => {
  test('run as plain text it leaves what the migration leaves, and the migration finds it current', async () => {
    await using other = await createTestDatabase()
    await db.pool.query(await migrationSql({ schema: db.schema }))
    await migrateUp(other.pool, { schema: other.schema })
    expect(await migrationStatus(db.pool, { schema: db.schema })).toMatchObject({ state: 'current' })
    expect((await migrateUp(db.pool, { schema: db.schema })).applied).toEqual([])
    expect(await objectsOf(db)).toEqual(await objectsOf(other))
  })

  test('from a version on it holds only the later steps', async () => {
    const all = await readMigrations()
    const [first] = all
    await db.pool.query(await migrationSql({ schema: db.schema }))
    const rest = await migrationSql({ schema: db.schema, from: first?.version as number })
    expect(rest).not.toContain('==== 0001_')
    expect(rest).toContain(all[1]?.checksum)
    expect(rest).not.toContain(first?.checksum)
    expect(await migrationSql({ schema: db.schema, from: await latest() })).not.toContain('insert into')
  })

  test('from must be a version', async () => {
    await expect(migrationSql({ schema: 'x', from: -1 })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
  })

  /** Tables with their columns and constraints, indexes, functions and triggers, without the schema's name. */
  async function objectsOf(database: TestDatabase): Promise<string[]> {
    const found = await column<string>(
      database.pool,
      `select 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || coalesce(column_default, '')
         from information_schema.columns where table_schema = $1
       union all select 'index ' || indexdef from pg_indexes where schemaname = $1
       union all select 'constraint ' || conname || ' ' || pg_get_constraintdef(oid) from pg_constraint
                  where connamespace = $1::regnamespace
       union all select 'function ' || pg_get_functiondef(oid) || coalesce(proacl::text, '') from pg_proc
                  where pronamespace = $1::regnamespace
       union all select 'trigger ' || pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
                  where c.relnamespace = $1::regnamespace
       order by 1`,
      [database.schema],
    )
    return found
      .map((text) => text.replaceAll(`"${database.schema}"`, 'S').replaceAll(database.schema, 'S'))
      .toSorted()
  }
})

describe('any schema name', () => {
  const names = [
    'we"ird schema',
    '주문 아웃박스',
    'UPPER',
    "it's \\ odd",
    'select',
    'a.b',
    'line\nend; --',
    '{schema}',
  ]
  test.each(names)('%j is migrated, published into by a plain INSERT, and printed', async (name) => {
    const schema = quoteSchema(name)
    await withSchema(name, async () => {
      await migrateUp(db.pool, { schema: name })
      await db.pool.query(
        `insert into ${schema}.outbox_subscription (name, order_by, lanes, on_dead, max_attempts, start_from, state,
                joined_snapshot) values ('s', 'aggregate', 4, 'block', 3, 'now', 'active', pg_current_snapshot())`,
      )
      await db.pool.query(
        `insert into ${schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, sequence, payload)
         values ('a', 'B', 'c', '1', 1, '{}'), ('a', 'B', 'c', '1', 1, '{}')`,
      )
      expect(await column(db.pool, `select sequence::int from ${schema}.outbox_event order by id`)).toEqual([
        1, 2,
      ])
      expect(await one(db.pool, `select count(*)::int from ${schema}.outbox_delivery`)).toBe(2)
    })
    await withSchema(name, async () => {
      await db.pool.query(await migrationSql({ schema: name }))
      expect(await migrationStatus(db.pool, { schema: name })).toMatchObject({ state: 'current' })
    })
  })

  test('a name PostgreSQL would cut or cannot hold is refused before anything happens', async () => {
    for (const name of ['', 'x'.repeat(64), '가'.repeat(22), 'a\0b', '\ud800', 'a$commitpost$b']) {
      await expect(migrateUp(db.pool, { schema: name })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    }
  })
})

test('the migrations shipped are those in the repository, checked without regard to line ends', async () => {
  const [core] = await readMigrations()
  const file = new URL('../../../src/store/postgres/migrations/0001_core.sql', import.meta.url)
  expect(core?.sql).toBe((await readFile(file, 'utf8')).replaceAll('\r\n', '\n'))
  expect(core?.checksum).toMatch(/^[0-9a-f]{64}$/)
})
