import { recordProblem, refuseProblems } from '../../runtime/option-checks.ts'
import { SchemaMissingError, SchemaVersionError } from '../../runtime/schema-errors.ts'
import { sqlState } from '../../runtime/sql-state.ts'
import { isPool, type PgClient, type PgPool, rawQuery, withClient } from './client.ts'
import { DEFAULT_SCHEMA, plainName, type QuotedSchema, quoteSchema } from './identifiers.ts'
import { type Migration, readMigrations } from './migration-files.ts'
import { dateOf, timeColumn } from './time-column.ts'

const appliedSql = (schema: QuotedSchema): string => `
  select version, name, checksum, ${timeColumn('applied_at')}
    from ${schema}.outbox_migration
   order by version`

/** A step as the database remembers it. */
export interface AppliedMigration {
  readonly version: number
  readonly name: string
  readonly checksum: string
  readonly appliedAt: Date
}

/** How the schema in the database compares with what this version of the code needs. */
export interface MigrationStatus {
  /** The newest step applied, or null where nothing was ever installed. */
  readonly schemaVersion: number | null
  readonly codeVersion: number
  readonly applied: readonly AppliedMigration[]
  readonly pending: readonly Pick<Migration, 'version' | 'name'>[]
  readonly state: 'missing' | 'current' | 'behind' | 'ahead'
}

/** Compares schema and code. Only reads; needs SELECT on `outbox_migration`. */
export async function migrationStatus(
  pool: PgPool,
  options: { readonly schema?: string } = {},
): Promise<MigrationStatus> {
  refuseProblems('migrationStatus', [
    isPool(pool) ? null : 'the first argument must be a pool, such as new pg.Pool()',
    recordProblem('the options', options),
  ])
  const schema = quoteSchema(options.schema ?? DEFAULT_SCHEMA)
  const migrations = await readMigrations()
  return statusOf(await withClient(pool, (client) => readApplied(client, schema)), migrations)
}

/** Throws SchemaMissingError or SchemaVersionError, which say what to run, unless the schema is exactly the one this code needs. */
export async function assertSchemaCurrent(pool: PgPool, schema: QuotedSchema): Promise<void> {
  const migrations = await readMigrations()
  const applied = await withClient(pool, (client) => readApplied(client, schema))
  const { state, schemaVersion, codeVersion } = statusOf(applied, migrations)
  if (schemaVersion === null) throw new SchemaMissingError(plainName(schema))
  if (state !== 'current') throw new SchemaVersionError(schemaVersion, codeVersion)
}

/** The steps that were applied, oldest first. None where the schema or its bookkeeping does not exist. */
export async function readApplied(
  client: PgClient,
  schema: QuotedSchema,
): Promise<readonly AppliedMigration[]> {
  try {
    const rows = await rawQuery(client, appliedSql(schema), [])
    return rows.map(([version, name, checksum, appliedAt]) => ({
      version: Number(version),
      name: name as string,
      checksum: checksum as string,
      appliedAt: dateOf(appliedAt as string),
    }))
  } catch (error) {
    if (sqlState(error) === '42P01') return []
    throw error
  }
}

/** The comparison itself. */
export function statusOf(
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
): MigrationStatus {
  const codeVersion = migrations.at(-1)?.version ?? 0
  const schemaVersion = applied.at(-1)?.version ?? null
  const known = new Set(applied.map(({ version }) => version))
  const pending = migrations
    .filter(({ version }) => !known.has(version))
    .map(({ version, name }) => ({ version, name }))
  return {
    schemaVersion,
    codeVersion,
    applied,
    pending,
    state: stateOf(schemaVersion, codeVersion, pending.length),
  }
}

function stateOf(
  schemaVersion: number | null,
  codeVersion: number,
  pending: number,
): MigrationStatus['state'] {
  if (schemaVersion === null) return 'missing'
  if (schemaVersion > codeVersion) return 'ahead'
  return pending === 0 ? 'current' : 'behind'
}
