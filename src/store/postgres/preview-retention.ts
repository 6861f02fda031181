import type { RetentionPreview, RetentionRequest } from '../retention-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { retentionSettings } from './retention-settings.ts'

const draftSql = (schema: QuotedSchema): string =>
  `select to_jsonb(${schema}.outbox_draft_retention($1, $2::jsonb))`

const previewSql = (schema: QuotedSchema): string =>
  `select run, events, is_over, run ->> 'awaiting_export', run ->> 'unknown_type'
     from ${schema}.outbox_preview_retention($1::jsonb, $2)`

/** Only read, so that larger pages harm nobody. */
const PAGE = 5_000

/** Goes through what a run would, page by page, and counts. */
export async function previewRetention(
  pool: PgPool,
  schema: QuotedSchema,
  request: RetentionRequest,
): Promise<RetentionPreview> {
  const values = [request.policy, retentionSettings(request)]
  const [draft] = await withClient(pool, (client) => rawQuery(client, draftSql(schema), values))
  let run = draft?.[0]
  for (let events = 0; ; ) {
    const page = [run, PAGE]
    const [row] = await withClient(pool, (client) => rawQuery(client, previewSql(schema), page))
    const [next, found, isOver, awaitingExport, unknownType] = row ?? []
    run = next
    events += Number(found)
    if (isOver === 't') {
      return { events, awaitingExport: Number(awaitingExport), unknownType: Number(unknownType) }
    }
  }
}
