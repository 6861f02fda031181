import type { RetentionPace, RetentionStep } from '../retention-store.ts'
import { type PgPool, type RawRow, rawQuery, withTransaction } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'
import { surveyPeriod } from './survey-period.ts'

const COLUMNS = 'state, deleted, archived, wait_ms, waits_for'

const byPolicySql = (schema: QuotedSchema): string =>
  `select ${COLUMNS} from ${schema}.outbox_retain_by_policy($1, $2, $3, $4, $5)`

const byHandSql = (schema: QuotedSchema): string =>
  `select ${COLUMNS} from ${schema}.outbox_retain($1, $6, $7, $2, $3, $4, $5)`

/** One batch of a run, in one transaction with its record. */
export async function stepRetention(
  pool: PgPool,
  schema: QuotedSchema,
  runId: string,
  stepper: string,
  { batchSize, pauseMs, share }: RetentionPace,
  act: { readonly operator: string; readonly note: string | null } | null,
): Promise<RetentionStep> {
  await surveyPeriod(pool, schema, runId)
  const values = [runId, stepper, batchSize, pauseMs, share]
  const [row] = await withTransaction(pool, (client) =>
    act === null
      ? rawQuery(client, byPolicySql(schema), values)
      : rawQuery(client, byHandSql(schema), [...values, operatorName(act.operator), operatorNote(act.note)]),
  )
  const [state, deleted, archived, waitMs, waitsFor] = row as RawRow
  return {
    state: state as RetentionStep['state'],
    deleted: Number(deleted),
    archived: Number(archived),
    waitMs: Number(waitMs),
    waitsFor: (waitsFor ?? null) as RetentionStep['waitsFor'],
  }
}
