import { NotFoundError } from '../../runtime/errors.ts'
import type { ExportRecord } from '../export-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { driverErrorOf } from './driver-error.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'
import { dateOf, timeColumn } from './time-column.ts'

const verifySql = (schema: QuotedSchema): string =>
  `select ${timeColumn('v')} from ${schema}.outbox_verify_export($1, $2, $3, $4) as v`

/** Writes down that the files of an export were found whole, in one transaction with the operator's record. */
export async function verifyExport(
  pool: PgPool,
  schema: QuotedSchema,
  { id, manifestSha256 }: ExportRecord,
  operator: string,
  note: string | null,
): Promise<Date> {
  const values = [id, manifestSha256, operatorName(operator), operatorNote(note)]
  try {
    const [row] = await withClient(pool, (client) => rawQuery(client, verifySql(schema), values))
    return dateOf(row?.[0] as string)
  } catch (error) {
    if (driverErrorOf(error)?.code !== 'P0002') throw error
    throw new NotFoundError('export', id, { cause: error })
  }
}

// What took the place of another event may have come after the export, and is in the next one: it is asked for apart.
const missingSql = (schema: QuotedSchema): string => `
  select e.event_id from ${schema}.outbox_event e
   where e.stream = $1 and e.id >= $2 and e.id <= $3
     and not exists (select 1 from unnest($4::uuid[]) as known(event_id) where known.event_id = e.event_id)
     and not exists (select 1 from ${schema}.outbox_amendment a where a.event_id = e.event_id)
   order by e.id limit 20`

/** The first events of a part of an export's range that the database has and that are not among those known. */
export async function missingFromExport(
  pool: PgPool,
  schema: QuotedSchema,
  { stream }: ExportRecord,
  from: string,
  to: string,
  known: readonly string[],
): Promise<readonly string[]> {
  const values = [stream, from, to, [...known]]
  const rows = await withClient(pool, (client) => rawQuery(client, missingSql(schema), values))
  return rows.map(([eventId]) => eventId as string)
}

const amendedSql = (schema: QuotedSchema): string =>
  `select a.event_id from ${schema}.outbox_amendment a where a.export_id = $1`

/** The events of an export that took the place of another. */
export async function amendedOf(
  pool: PgPool,
  schema: QuotedSchema,
  exportId: string,
): Promise<readonly string[]> {
  const rows = await withClient(pool, (client) => rawQuery(client, amendedSql(schema), [exportId]))
  return rows.map(([eventId]) => eventId as string)
}
