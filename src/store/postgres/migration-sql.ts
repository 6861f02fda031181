import {
  recordProblem,
  refuseProblems,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../../runtime/option-checks.ts'
import { type QuotedSchema, quoteLiteral, quoteSchema } from './identifiers.ts'
import { fillIn, type Migration, readMigrations } from './migration-files.ts'

/** The table that remembers which steps were applied. */
export const bookkeepingSql = (schema: QuotedSchema): string => `
create table if not exists ${schema}.outbox_migration (
  version    integer     primary key,
  name       text        not null,
  checksum   text        not null,
  applied_at timestamptz not null default clock_timestamp()
);`

/** Remembers one step. Literals, not parameters, because other tools run it as text. */
export const insertMigrationSql = (schema: QuotedSchema, { version, name, checksum }: Migration): string => `
insert into ${schema}.outbox_migration (version, name, checksum)
  values (${version}, ${quoteLiteral(name)}, ${quoteLiteral(checksum)});`

/** What to print. */
export interface MigrationSqlOptions {
  /** The schema's name, as it is: quoting is done here. */
  readonly schema: string
  /**
   * The version the database is at: only later steps are printed.
   * @default 0
   */
  readonly from?: number
}

/**
 * Everything `migrateUp` would do, as one SQL script for tools such as psql and Flyway. It includes the bookkeeping,
 * so that afterwards `migrateUp` and the workers find the schema current.
 */
export async function migrationSql(options: MigrationSqlOptions): Promise<string> {
  refuseProblems('migrationSql', [recordProblem('the argument', options)])
  const { schema: name, from = 0 } = options
  const all = await readMigrations()
  refuseProblems('migrationSql', [
    ...unknownOptionProblems(options, ['schema', 'from']),
    wholeNumberProblem('from', from, 0, all.at(-1)?.version ?? 0),
  ])
  const schema = quoteSchema(name)
  const migrations = all.filter(({ version }) => version > from)
  const opening = from === 0 ? [`create schema if not exists ${schema};`, bookkeepingSql(schema)] : []
  const steps = migrations.map((migration) => stepSql(schema, migration))
  return [header(from, migrations), ...opening, ...steps].join('\n')
}

function header(from: number, migrations: readonly Migration[]): string {
  const to = migrations.at(-1)?.version ?? from
  return `-- Commitpost: the schema from version ${from} to ${to}. Run it in one transaction (psql --single-transaction).\n`
}

function stepSql(schema: QuotedSchema, migration: Migration): string {
  const title = `${String(migration.version).padStart(4, '0')}_${migration.name}`
  return `\n-- ==== ${title}\n\n${fillIn(migration.sql, schema)}${insertMigrationSql(schema, migration)}\n`
}
