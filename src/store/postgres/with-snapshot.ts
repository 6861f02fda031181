import { isStatementError, type PgClient, type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// Compiling a statement that runs once costs more than it saves, and a join of everything needs room: both for this
// transaction only.
const SETTINGS = `select set_config('jit', 'off', true), set_config('work_mem', '64MB', true)`

// Before the snapshot is taken: what retention moves out of a period that it drops, no older snapshot sees. With this it
// waits until the reader is done, or passes the period over.
const lockSql = (schema: QuotedSchema): string =>
  `lock table ${schema}.outbox_event, ${schema}.outbox_delivery in access share mode`

/** Runs `work` in a transaction that only reads, and sees everything as it is at one instant. */
export async function withSnapshot<Result>(
  pool: PgPool,
  schema: QuotedSchema,
  work: (client: PgClient) => Promise<Result>,
): Promise<Result> {
  return withClient(pool, async (client) => {
    await client.query('begin isolation level repeatable read read only')
    try {
      await client.query(lockSql(schema))
      await rawQuery(client, SETTINGS, [])
      const result = await work(client)
      await client.query('commit')
      return result
    } catch (error) {
      if (isStatementError(error)) await client.query('rollback')
      throw error
    }
  })
}
