import type { PolicyRedrive, PolicyReport } from '../redrive-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { streamPatterns } from './stream-patterns.ts'

const policySql = (schema: QuotedSchema): string =>
  `select redriven, left_to_person from ${schema}.outbox_redrive_by_policy($1, $2, $3, $4, $5, $6, $7)`

/** Re-drives what a policy names and whose time has come. */
export async function redriveByPolicy(
  pool: PgPool,
  schema: QuotedSchema,
  subscriptionId: number,
  { name, codes, afterMs, factor, atMost }: PolicyRedrive,
): Promise<PolicyReport> {
  const exact = codes.filter((code) => !code.endsWith('*'))
  const patterns = streamPatterns(codes.filter((code) => code.endsWith('*')))
  const values = [subscriptionId, name, exact, patterns, afterMs, factor, atMost]
  const [row] = await withClient(pool, (client) => rawQuery(client, policySql(schema), values))
  return { redriven: Number(row?.[0]), leftToPerson: Number(row?.[1]) }
}
