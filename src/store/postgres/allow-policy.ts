import type { RetentionRequest } from '../retention-store.ts'
import { type PgPool, rawQuery, withTransaction } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { retentionSettings } from './retention-settings.ts'

const allowSql = (schema: QuotedSchema): string => `
  insert into ${schema}.outbox_retention_policy (policy, settings) values ($1, $2::jsonb)
  on conflict (policy) do update set settings = excluded.settings, allowed_at = clock_timestamp()`

/** Says what workers may do in the name of a policy that do not own the tables. Needs the rights of the owner. */
export async function allowPolicy(
  pool: PgPool,
  schema: QuotedSchema,
  request: RetentionRequest,
): Promise<void> {
  const values = [request.policy, retentionSettings(request)]
  await withTransaction(pool, (client) => rawQuery(client, allowSql(schema), values))
}
