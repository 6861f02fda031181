import type { ExportQuery, ExportRecord } from '../export-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { EXPORT_COLUMNS, toExportRecord } from './export-record.ts'
import type { QuotedSchema } from './identifiers.ts'

const DEFAULT_LIMIT = 50

const listSql = (schema: QuotedSchema): string => `
  select ${EXPORT_COLUMNS} from ${schema}.outbox_export x
   where ($1::text is null or x.stream = $1) and ($2::bigint is null or x.id < $2)
   order by x.id desc limit $3`

/** Exports, newest first. */
export async function findExports(
  pool: PgPool,
  schema: QuotedSchema,
  { stream, before, limit = DEFAULT_LIMIT }: ExportQuery,
): Promise<readonly ExportRecord[]> {
  const values = [stream ?? null, before ?? null, limit]
  const rows = await withClient(pool, (client) => rawQuery(client, listSql(schema), values))
  return rows.map(toExportRecord)
}

const findSql = (schema: QuotedSchema): string => `
  select ${EXPORT_COLUMNS} from ${schema}.outbox_export x
   where x.manifest_sha256 = $1 or (x.stream = $2 and x.first_position = $3::bigint)
   order by x.manifest_sha256 = $1 desc, x.id limit 1`

/** The export with this manifest; where there is none, the one of the stream that begins at this position. */
export async function findExport(
  pool: PgPool,
  schema: QuotedSchema,
  manifestSha256: string,
  stream: string,
  firstPosition: string,
): Promise<ExportRecord | null> {
  const values = [manifestSha256, stream, firstPosition]
  const [row] = await withClient(pool, (client) => rawQuery(client, findSql(schema), values))
  return row === undefined ? null : toExportRecord(row)
}
