import type { ExportRecord } from '../export-store.ts'
import type { RawRow } from './client.ts'
import { dateOf, timeColumn } from './time-column.ts'

/** The columns `toExportRecord` maps, of a row of `outbox_export` called `x`. */
export const EXPORT_COLUMNS: string = `x.id, x.stream, x.first_position, x.last_position, x.events, x.location,
         x.manifest_sha256, x.masked, x.exported_by, ${timeColumn('x.created_at')}, ${timeColumn('x.verified_at')}`

/** Maps a row of EXPORT_COLUMNS. */
export function toExportRecord(row: RawRow): ExportRecord {
  const text = (column: number): string => row[column] as string
  const verifiedAt = row[10] ?? null
  return {
    id: text(0),
    stream: text(1),
    firstPosition: text(2),
    lastPosition: text(3),
    events: Number(row[4]),
    location: text(5),
    manifestSha256: text(6),
    masked: row[7] === 't',
    exportedBy: text(8),
    createdAt: dateOf(text(9)),
    verifiedAt: verifiedAt === null ? null : dateOf(verifiedAt),
  }
}
