import { type PgPool, rawQuery, withTransaction } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// It reads whole partitions, where there is one to be dropped.
const SETTINGS = `select set_config('statement_timeout', '0', true)`

const surveySql = (schema: QuotedSchema): string => `select ${schema}.outbox_survey_period($1)`

/**
 * Finds out what would have to stay of a period that a run could drop. In a transaction of its own, before the one that
 * drops: it has no id while it reads, so nobody waits for it.
 */
export async function surveyPeriod(pool: PgPool, schema: QuotedSchema, runId: string): Promise<void> {
  await withTransaction(pool, async (client) => {
    await rawQuery(client, SETTINGS, [])
    await rawQuery(client, surveySql(schema), [runId])
  })
}
