import type { MonitorTurn } from '../alert-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// A turn that has lapsed is not revived, even if nobody took it.
const extendTurnSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_monitor m
     set until = clock_timestamp() + $3 * interval '1 millisecond'
   where m.holder = $1 and m.epoch = $2::bigint and m.until > clock_timestamp()
  returning 1`

/** Keeps the turn for another while. False when it has lapsed. */
export async function extendMonitorTurn(
  pool: PgPool,
  schema: QuotedSchema,
  { holder, epoch }: MonitorTurn,
  leaseMs: number,
): Promise<boolean> {
  const values = [holder, epoch, leaseMs]
  const rows = await withClient(pool, (client) => rawQuery(client, extendTurnSql(schema), values))
  return rows.length > 0
}
