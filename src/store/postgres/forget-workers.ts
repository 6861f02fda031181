import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// One that was killed cannot take its row with it, and its name is nobody's again. Kept for a day, so that people can see
// who vanished. A row that somebody has locked can wait.
const forgetWorkersSql = (schema: QuotedSchema): string => `
  delete from ${schema}.outbox_worker w
   where w.worker_id = any (array(
     select v.worker_id from ${schema}.outbox_worker v
      where v.until < clock_timestamp() - interval '1 day'
      for update skip locked))`

/** Forgets workers that vanished a day ago or longer. */
export async function forgetWorkers(pool: PgPool, schema: QuotedSchema): Promise<void> {
  await withClient(pool, (client) => rawQuery(client, forgetWorkersSql(schema), []))
}
