import { type PgPool, type RawRow, rawQuery, withTransaction } from './client.ts'

/** Long for what reads a few thousand rows, and short enough that a look which goes wrong burdens nobody for long. */
const LONGEST_READ = '20s'

/** Reads, and is ended by the server if that takes too long. */
export async function readBounded(
  pool: PgPool,
  sql: string,
  values: readonly unknown[],
): Promise<readonly RawRow[]> {
  return withTransaction(pool, async (client) => {
    await rawQuery(client, `select set_config('statement_timeout', $1, true)`, [LONGEST_READ])
    return rawQuery(client, sql, values)
  })
}
