import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const leaveSql = (schema: QuotedSchema): string =>
  `delete from ${schema}.outbox_worker w where w.worker_id = $1`

/** Forgets a worker that stops. */
export async function leave(pool: PgPool, schema: QuotedSchema, workerId: string): Promise<void> {
  await withClient(pool, (client) => rawQuery(client, leaveSql(schema), [workerId]))
}
