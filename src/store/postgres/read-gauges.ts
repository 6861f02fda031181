import type { GaugeLimits, Gauges } from '../gauge-store.ts'
import { backlogGauges } from './backlog-gauges.ts'
import { type PgClient, type PgPool, withTransaction } from './client.ts'
import { deadLetterGauges } from './dead-letter-gauges.ts'
import type { QuotedSchema } from './identifiers.ts'
import { siblingPool } from './sibling-pool.ts'
import { subscriptionGauges } from './subscription-gauges.ts'
import { oldestEventSeconds, tableGauges } from './table-gauges.ts'

// The planner may know anything or nothing about the tables: with these it has only the partial indexes to choose.
// All is said for this one transaction, because behind a pooler the session is somebody else's next.
const DISABLED = ['seqscan', 'bitmapscan', 'sort', 'hashjoin', 'mergejoin'] as const
const settingsSql = (timeoutMs: number): string =>
  [
    'set transaction read only',
    `set local statement_timeout = ${timeoutMs}`,
    `set local lock_timeout = ${timeoutMs}`,
    'set local jit = off',
    'set local max_parallel_workers_per_gather = 0',
    ...DISABLED.map((way) => `set local enable_${way} = off`),
  ].join('; ')

/** One connection, opened for this and closed again: the application's own are for its handlers. */
const CONNECTIONS = 1

/** How the tables stand, read on a connection of its own in one short transaction that writes nothing. */
export async function readGauges(pool: PgPool, schema: QuotedSchema, limits: GaugeLimits): Promise<Gauges> {
  const sibling = siblingPool(pool, () => undefined, CONNECTIONS)
  try {
    return await withTransaction(sibling.pool, (client) => readAll(client, schema, limits))
  } finally {
    if (sibling.own) await sibling.pool.end()
  }
}

async function readAll(client: PgClient, schema: QuotedSchema, limits: GaugeLimits): Promise<Gauges> {
  await client.query(settingsSql(limits.timeoutMs))
  const { backlog, capped } = await backlogGauges(client, schema, limits.countLimit)
  const deadLetters = await deadLetterGauges(client, schema, limits.countLimit)
  const letters = deadLetters.reduce((sum, { count }) => sum + count, 0)
  return {
    backlog,
    deadLetters,
    subscriptions: await subscriptionGauges(client, schema),
    tables: await tableGauges(client, schema),
    oldestEventSeconds: await oldestEventSeconds(client, schema),
    capped: capped || letters >= limits.countLimit,
  }
}
