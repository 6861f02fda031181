import { type PgPool, type RawRow, rawQuery, withTransaction } from './client.ts'

/** Long for what reads a few thousand rows, and short enough that a look which goes wrong burdens nobody for long. */
const LONGEST_READ = '20s'

// A planner that knows too little (before the first ANALYZE, say) takes the whole of a partial index for a few rows,
// collects them all and sorts them, where the first of them in its order are wanted.
const settingsSql = `
  select set_config('statement_timeout', $1, true), set_config('enable_bitmapscan', 'off', true),
         set_config('enable_seqscan', 'off', true)`

/** Reads the heads of indexes, and is ended by the server if that takes too long. */
export async function readBounded(
  pool: PgPool,
  sql: string,
  values: readonly unknown[],
): Promise<readonly RawRow[]> {
  return withTransaction(pool, async (client) => {
    await rawQuery(client, settingsSql, [LONGEST_READ])
    return rawQuery(client, sql, values)
  })
}
