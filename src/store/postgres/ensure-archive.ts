import { InvalidOptionsError } from '../../runtime/errors.ts'
import type { ArchiveTable } from '../retention-store.ts'
import { type PgClient, type PgPool, rawQuery, withClient, withTransaction } from './client.ts'
import { type QuotedSchema, quoteIdentifier } from './identifiers.ts'

const COLUMNS: readonly (readonly [name: string, type: string, rest: string])[] = [
  ['event_id', 'uuid', 'primary key'],
  ['position', 'bigint', 'not null'],
  ['stream', 'text', 'not null'],
  ['event_type', 'text', 'not null'],
  ['schema_version', 'integer', 'not null'],
  ['aggregate_type', 'text', 'not null'],
  ['aggregate_id', 'text', 'not null'],
  ['ordering_key', 'text', ''],
  ['sequence', 'bigint', ''],
  ['payload', 'jsonb', 'not null'],
  ['headers', 'jsonb', 'not null'],
  ['occurred_at', 'timestamp with time zone', 'not null'],
  ['created_at', 'timestamp with time zone', 'not null'],
  ['deliveries', 'jsonb', 'not null'],
  ['masked', 'boolean', 'not null'],
  ['archived_at', 'timestamp with time zone', 'not null'],
]

const isKnownSql = (schema: QuotedSchema): string =>
  `select 1 from ${schema}.outbox_archive a where a.schema_name = $1 and a.table_name = $2`

const schemaExistsSql = 'select 1 from pg_namespace n where n.nspname = $1'

const createSchemaSql = ({ schema }: ArchiveTable): string => `create schema ${quoteIdentifier(schema)}`

const nameOf = ({ schema, table }: ArchiveTable): string =>
  `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`

const createTableSql = (archive: ArchiveTable): string => `
  create table if not exists ${nameOf(archive)} (
    ${COLUMNS.map(([name, type, rest]) => `${name} ${type} ${rest}`).join(',\n    ')})`

// Named after nothing, so that it cannot clash: a table that was there before keeps the indexes it has.
const createIndexSql = (archive: ArchiveTable): string => `create index on ${nameOf(archive)} (position)`

const columnsSql = `
  select a.attname, format_type(a.atttypid, null) from pg_attribute a
    join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = $1 and c.relname = $2 and a.attnum > 0 and not a.attisdropped`

const registerSql = (schema: QuotedSchema): string => `
  insert into ${schema}.outbox_archive (schema_name, table_name) values ($1, $2) on conflict do nothing`

/** Makes an archive and registers it, unless it is registered. Needs the rights of the owner of the tables. */
export async function ensureArchive(
  pool: PgPool,
  schema: QuotedSchema,
  archive: ArchiveTable,
): Promise<void> {
  const values = [archive.schema, archive.table]
  const known = await withClient(pool, (client) => rawQuery(client, isKnownSql(schema), values))
  if (known.length > 0) return
  await withTransaction(pool, async (client) => {
    // One at a time: of two who make the same schema at once one would fail.
    await rawQuery(client, `select ${schema}.outbox_lock_registry()`, [])
    await createTable(client, archive)
    await rawQuery(client, registerSql(schema), values)
  })
}

async function createTable(client: PgClient, archive: ArchiveTable): Promise<void> {
  const found = await rawQuery(client, schemaExistsSql, [archive.schema])
  if (found.length === 0) await rawQuery(client, createSchemaSql(archive), [])
  const before = await readColumns(client, archive)
  if (before.size === 0) {
    await rawQuery(client, createTableSql(archive), [])
    await rawQuery(client, createIndexSql(archive), [])
    return
  }
  const wrong = COLUMNS.filter(([name, type]) => before.get(name) !== type)
  if (wrong.length === 0) return
  throw new InvalidOptionsError(
    `the archive ${archive.schema}.${archive.table}`,
    wrong.map(([name, type]) => {
      const is = before.get(name)
      return is === undefined
        ? `the table has no column ${name} (${type})`
        : `its column ${name} is ${is}, but must be ${type}`
    }),
  )
}

async function readColumns(
  client: PgClient,
  { schema, table }: ArchiveTable,
): Promise<ReadonlyMap<string, string>> {
  const rows = await rawQuery(client, columnsSql, [schema, table])
  return new Map(rows.map(([name, type]) => [name as string, type as string]))
}
