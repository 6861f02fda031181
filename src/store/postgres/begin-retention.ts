import type { RetentionRequest } from '../retention-store.ts'
import { type PgPool, rawQuery, withTransaction } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { retentionSettings } from './retention-settings.ts'

const byHandSql = (schema: QuotedSchema): string => `select ${schema}.outbox_begin_retention($1, $2::jsonb)`

const byPolicySql = (schema: QuotedSchema): string =>
  `select ${schema}.outbox_begin_retention_by_policy($1, $2::jsonb, $3)`

/** Begins a run or finds the unfinished one; null where it is not due. */
export async function beginRetention(
  pool: PgPool,
  schema: QuotedSchema,
  request: RetentionRequest,
  hour: number | null,
): Promise<string | null> {
  const values = [request.policy, retentionSettings(request)]
  const [row] = await withTransaction(pool, (client) =>
    hour === null
      ? rawQuery(client, byHandSql(schema), values)
      : rawQuery(client, byPolicySql(schema), [...values, hour]),
  )
  return row?.[0] ?? null
}
