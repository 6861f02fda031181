import type { VanishedWorker } from '../alert-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// A worker that stops removes its row.
const vanishedSql = (schema: QuotedSchema): string => `
  select w.worker_id, w.host, w.pid, extract(epoch from clock_timestamp() - w.seen_at)::float8,
         coalesce((select json_agg(s.name order by s.name) from ${schema}.outbox_subscription s
                    where s.id = any (w.subscription_ids)), '[]')
    from ${schema}.outbox_worker w
   where w.until + $1 * interval '1 millisecond' <= clock_timestamp()
   order by w.seen_at desc, w.worker_id
   limit $2`

const MOST_AT_ONCE = 100

/** Workers whose heartbeat stopped so long ago, and who did not leave. The last to vanish first. */
export async function readVanishedWorkers(
  pool: PgPool,
  schema: QuotedSchema,
  missingMs: number,
): Promise<readonly VanishedWorker[]> {
  const values = [missingMs, MOST_AT_ONCE]
  const rows = await withClient(pool, (client) => rawQuery(client, vanishedSql(schema), values))
  return rows.map((row) => ({
    workerId: row[0] as string,
    host: row[1] as string,
    pid: Number(row[2]),
    lastSeenSeconds: Math.max(0, Number(row[3])),
    subscriptions: JSON.parse(row[4] as string) as readonly string[],
  }))
}
