import type { RedriveSettings, RedriveState, RedriveStep } from '../redrive-store.ts'
import { type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'
import { redriveRefusal } from './redrive-refusal.ts'
import { rowId } from './row-id.ts'

const beginSql = (schema: QuotedSchema): string =>
  `select ${schema}.outbox_begin_redrive($1, $2, $3, $4, $5, $6, $7)`

/** Begins to apply a plan, takes part in what somebody else applies, or resumes one. */
export async function beginRedrive(
  pool: PgPool,
  schema: QuotedSchema,
  planId: string,
  operator: string,
  settings: RedriveSettings,
): Promise<RedriveState> {
  const { ratePerSecond, atOnce, stopWhenFailedShare, minSample, resume } = settings
  const values = [operatorName(operator), ratePerSecond, atOnce, stopWhenFailedShare, minSample, resume]
  const row = await call(pool, beginSql(schema), planId, values)
  return row[0] as RedriveState
}

const stepSql = (schema: QuotedSchema): string =>
  `select plan_state, driven, wait_ms from ${schema}.outbox_step_redrive($1, $2, $3)`

/** One step, in one transaction with its record. */
export async function stepRedrive(
  pool: PgPool,
  schema: QuotedSchema,
  planId: string,
  operator: string,
  note: string | null,
): Promise<RedriveStep> {
  const row = await call(pool, stepSql(schema), planId, [operatorName(operator), operatorNote(note)])
  return { state: row[0] as RedriveState, driven: Number(row[1]), waitMs: Number(row[2]) }
}

const cancelSql = (schema: QuotedSchema): string => `select ${schema}.outbox_cancel_redrive($1, $2, $3)`

/** Ends a plan. What is on its way goes on. */
export async function cancelRedrive(
  pool: PgPool,
  schema: QuotedSchema,
  planId: string,
  operator: string,
  note: string | null,
): Promise<void> {
  await call(pool, cancelSql(schema), planId, [operatorName(operator), operatorNote(note)])
}

async function call(pool: PgPool, sql: string, planId: string, values: readonly unknown[]): Promise<RawRow> {
  const id = rowId('plan', planId)
  try {
    const [row] = await withClient(pool, (client) => rawQuery(client, sql, [id, ...values]))
    return row as RawRow
  } catch (error) {
    throw redriveRefusal(error, planId)
  }
}
