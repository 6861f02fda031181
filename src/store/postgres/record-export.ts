import type { ExportRecord, NewExport } from '../export-store.ts'
import { type PgPool, rawQuery, withTransaction } from './client.ts'
import { EXPORT_COLUMNS, toExportRecord } from './export-record.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'
import { refusal } from './refusal.ts'

const recordSql = (schema: QuotedSchema): string =>
  `select ${schema}.outbox_record_export($1, $2, $3, $4, $5, $6, $7, $8::uuid[], $9, $10)`

const readSql = (schema: QuotedSchema): string =>
  `select ${EXPORT_COLUMNS} from ${schema}.outbox_export x where x.id = $1`

/** Writes an export down, in one transaction with the operator's record. */
export async function recordExport(
  pool: PgPool,
  schema: QuotedSchema,
  exported: NewExport,
): Promise<ExportRecord> {
  const { stream, firstPosition, lastPosition, events, location, manifestSha256, masked, amended } = exported
  const act = [operatorName(exported.operator), operatorNote(exported.note)]
  const range = [stream, firstPosition, lastPosition, events]
  const values = [...range, location, manifestSha256, masked, [...amended], ...act]
  try {
    return await withTransaction(pool, async (client) => {
      const [recorded] = await rawQuery(client, recordSql(schema), values)
      const [row] = await rawQuery(client, readSql(schema), [recorded?.[0]])
      return toExportRecord(row ?? [])
    })
  } catch (error) {
    throw refusal(error)
  }
}
