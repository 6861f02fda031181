import { CommitpostError } from '../../runtime/errors.ts'
import {
  booleanProblem,
  recordProblem,
  refuseProblems,
  unknownOptionProblems,
} from '../../runtime/option-checks.ts'
import { RefusedError } from '../../runtime/refused-error.ts'
import { SchemaVersionError } from '../../runtime/schema-errors.ts'
import { isPool, type PgClient, type PgPool, rawQuery, withClient, withTransaction } from './client.ts'
import { DEFAULT_SCHEMA, type QuotedSchema, quoteSchema } from './identifiers.ts'
import { fillIn, type Migration, readMigrations } from './migration-files.ts'
import { bookkeepingSql, insertMigrationSql } from './migration-sql.ts'
import { type AppliedMigration, readApplied, statusOf } from './migration-status.ts'

// Held until the commit and by nothing but this transaction, so that it also works behind a pooler that hands every
// transaction another connection.
const lockSql = 'select pg_advisory_xact_lock(hashtextextended($1, 0))'

// The session's own settings must not decide what the objects are bound to, nor cut a long step or the wait short.
const settingsSql = `
  select set_config('search_path', 'pg_catalog, pg_temp', true), set_config('statement_timeout', '0', true)`

const schemaExistsSql = 'select 1 from pg_catalog.pg_namespace where nspname = $1'

/** Where to migrate. */
export interface MigrateOptions {
  /**
   * The schema's name, as it is: quoting is done here.
   * @default 'commitpost'
   */
  readonly schema?: string
  /**
   * Whether to create the schema where it does not exist.
   * @default true
   */
  readonly createSchema?: boolean
}

/** What a migration came to. */
export interface MigrateReport {
  readonly schemaVersion: number
  /** The steps this call applied; empty where there was nothing to do. */
  readonly applied: readonly Pick<Migration, 'version' | 'name'>[]
}

/**
 * Brings the schema up to what this version of the code needs: all pending steps in one transaction, or none. Any
 * number of processes may call it at once; one applies, the others wait for it and find nothing to do.
 */
export async function migrateUp(pool: PgPool, given: MigrateOptions = {}): Promise<MigrateReport> {
  refuseProblems('migrateUp', migrateProblems(pool, given))
  const options = { schema: given.schema ?? DEFAULT_SCHEMA, createSchema: given.createSchema ?? true }
  const schema = quoteSchema(options.schema)
  const migrations = await readMigrations()
  const before = await withClient(pool, (client) => readApplied(client, schema))
  // Nothing to do needs no lock and no right to create anything.
  if (pendingAfter(before, migrations).length === 0) return report(migrations, [])
  return withTransaction(pool, async (client) => {
    await rawQuery(client, settingsSql, [])
    await rawQuery(client, lockSql, [`commitpost.migrate.${options.schema}`])
    await ensureSchema(client, options, schema)
    await client.query(bookkeepingSql(schema))
    const pending = pendingAfter(await readApplied(client, schema), migrations)
    for (const migration of pending) await apply(client, schema, migration)
    return report(migrations, pending)
  })
}

function migrateProblems(pool: unknown, options: MigrateOptions): readonly (string | null)[] {
  const poolProblem = isPool(pool) ? null : 'the first argument must be a pool, such as new pg.Pool()'
  const problem = recordProblem('the options', options)
  if (problem !== null) return [poolProblem, problem]
  return [
    poolProblem,
    // A misspelt schema would be created, and nobody would look there.
    ...unknownOptionProblems(options, ['schema', 'createSchema']),
    booleanProblem('createSchema', options.createSchema),
  ]
}

/** What is left to apply. Refuses a schema that this code does not know or that was changed behind its back. */
function pendingAfter(
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
): readonly Migration[] {
  const { state, schemaVersion, codeVersion } = statusOf(applied, migrations)
  if (state === 'ahead' && schemaVersion !== null) throw new SchemaVersionError(schemaVersion, codeVersion)
  const byVersion = new Map(applied.map((migration) => [migration.version, migration]))
  for (const migration of migrations) {
    const recorded = byVersion.get(migration.version)
    if (recorded !== undefined && recorded.checksum !== migration.checksum)
      throw changedMigration(migration, recorded)
  }
  return migrations.filter(({ version }) => !byVersion.has(version))
}

async function apply(client: PgClient, schema: QuotedSchema, migration: Migration): Promise<void> {
  await client.query(fillIn(migration.sql, schema))
  await client.query(insertMigrationSql(schema, migration))
}

async function ensureSchema(client: PgClient, options: MigrateOptions, schema: QuotedSchema): Promise<void> {
  // Looked up first: CREATE SCHEMA IF NOT EXISTS needs the right to create one even where it exists.
  const found = await rawQuery(client, schemaExistsSql, [options.schema])
  if (found.length > 0) return
  if (options.createSchema === false) {
    throw new CommitpostError(
      'SCHEMA_MISSING',
      `Schema ${schema} does not exist. Create it first, or allow the migration to create it.`,
    )
  }
  await client.query(`create schema ${schema}`)
}

function changedMigration(migration: Migration, recorded: AppliedMigration): RefusedError {
  return new RefusedError(
    'migration-changed',
    `Migration ${migration.version} (${migration.name}) is not the one that was applied on ` +
      `${recorded.appliedAt.toISOString()}: recorded checksum ${recorded.checksum.slice(0, 12)}…, ` +
      `this code's ${migration.checksum.slice(0, 12)}…. Applied migrations never change: install the version of ` +
      'commitpost that applied it, or a later release.',
    {
      data: {
        version: String(migration.version),
        name: migration.name,
        at: recorded.appliedAt.toISOString(),
      },
    },
  )
}

function report(migrations: readonly Migration[], applied: readonly Migration[]): MigrateReport {
  return {
    schemaVersion: migrations.at(-1)?.version ?? 0,
    applied: applied.map(({ version, name }) => ({ version, name })),
  }
}
