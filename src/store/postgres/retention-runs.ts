import type { RetentionRun } from '../retention-store.ts'
import { type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

const MOST = 100

const runsSql = (schema: QuotedSchema): string => `
  select r.id, r.policy, r.stream, ${timeColumn('r.cutoff')}, a.schema_name || '.' || a.table_name, r.last_position,
         r.deleted, r.archived, r.awaiting_export, r.unknown_type, r.holder, ${timeColumn('r.started_at')},
         ${timeColumn('r.updated_at')}, ${timeColumn('r.finished_at')}, r.superseded
    from ${schema}.outbox_retention_run r
    left join ${schema}.outbox_archive a on a.id = r.archive_id
   where case when $1::text is null
              then r.id = (select max(n.id) from ${schema}.outbox_retention_run n where n.policy = r.policy)
              else r.policy = $1 end
   order by r.id desc
   limit ${MOST}`

/** The newest run of each policy, or those of one, newest first. */
export async function retentionRuns(
  pool: PgPool,
  schema: QuotedSchema,
  policy: string | null,
): Promise<readonly RetentionRun[]> {
  return (await withClient(pool, (client) => rawQuery(client, runsSql(schema), [policy]))).map(toRun)
}

function toRun(row: RawRow): RetentionRun {
  const text = (column: number): string => row[column] as string
  const finishedAt = row[13] ?? null
  return {
    id: text(0),
    policy: text(1),
    stream: text(2),
    cutoff: dateOf(text(3)),
    archive: row[4] ?? null,
    lastPosition: text(5),
    deleted: Number(row[6]),
    archived: Number(row[7]),
    awaitingExport: Number(row[8]),
    unknownType: Number(row[9]),
    holder: row[10] ?? null,
    startedAt: dateOf(text(11)),
    updatedAt: dateOf(text(12)),
    finishedAt: finishedAt === null ? null : dateOf(finishedAt),
    superseded: row[14] === 't',
  }
}
