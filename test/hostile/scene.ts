import type pg from 'pg'
import { z } from 'zod'
import {
  createOutbox,
  defineEvents,
  type Outbox,
  type OutboxStore,
  type PublishInput,
  type Subscription,
  type Transaction,
  unchecked,
} from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { createTestDatabaseWithTables } from '../support/database.ts'

const brokenSchema = (validate: () => unknown): unknown => ({
  '~standard': { version: 1, vendor: 'broken', validate },
})

/** The catalogue of the hostile rows. */
export const events = defineEvents({
  OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<unknown>() },
  OrderChecked: {
    stream: 'shop.order',
    aggregate: 'order',
    schema: z.object({ total: z.number(), card: z.string().optional() }),
    sensitive: ['card'],
  },
  OrderFiled: {
    stream: 'shop.order',
    aggregate: 'order',
    storedAs: 'ORDER_FILED',
    orderingKey: (payload: unknown) => (payload as { key: () => string }).key(),
  },
  SchemaThrown: {
    stream: 'odd',
    aggregate: 'odd',
    schema: odd(() => {
      throw new Error('boom')
    }),
  },
  SchemaRejected: { stream: 'odd', aggregate: 'odd', schema: odd(() => Promise.reject(new Error('boom'))) },
  SchemaSilenced: { stream: 'odd', aggregate: 'odd', schema: odd(() => undefined) },
  SchemaBabbled: { stream: 'odd', aggregate: 'odd', schema: odd(() => ({ issues: 'all wrong' })) },
})
export type HostileEvents = typeof events
export type HostileOutbox = Outbox<HostileEvents, Transaction>
export type HostileSubscription = Subscription<HostileEvents, Transaction>

function odd(validate: () => unknown): ReturnType<typeof unchecked<unknown>> {
  return brokenSchema(validate) as ReturnType<typeof unchecked<unknown>>
}

/** A database with the tables, and one without, for everything that must leave both as they are. */
export interface Scene extends AsyncDisposable {
  readonly pool: pg.Pool
  readonly schema: string
  readonly url: string
  readonly store: OutboxStore<Transaction>
  readonly outbox: HostileOutbox
  /** An outbox on a schema that nobody migrated. */
  readonly unmigrated: HostileOutbox
  /** Begins, does the work, and commits whatever came of it: what was written by then would stay. */
  inTransaction<Result>(work: (tx: pg.PoolClient) => Promise<Result>): Promise<Result>
  /** Publishes an OrderPlaced with these details instead of good ones. */
  publish(details: Partial<Record<keyof PublishInput, unknown>>): Promise<string>
  /** Publishes this payload. */
  publishPayload(payload: unknown, name?: string): Promise<string>
  /** Everything in the tables, as one text to compare. */
  snapshot(): Promise<string>
}

export async function createScene(): Promise<Scene> {
  const database = await createTestDatabaseWithTables()
  const { pool, schema, url } = database
  const store = postgresStore({ pool, schema })
  const outbox = createOutbox({ store, events })
  const inTransaction: Scene['inTransaction'] = async (work) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      try {
        return await work(client)
      } finally {
        await client.query('commit')
      }
    } finally {
      client.release()
    }
  }
  const publish: Scene['publish'] = (details) =>
    inTransaction((tx) =>
      outbox.publish(tx, 'OrderPlaced', { aggregateId: '1', payload: {}, ...details } as PublishInput),
    )
  const publishPayload: Scene['publishPayload'] = (payload, name = 'OrderPlaced') =>
    inTransaction((tx) => outbox.publish(tx, name as 'OrderPlaced', { aggregateId: '1', payload }))
  return {
    pool,
    schema,
    url,
    store,
    outbox,
    unmigrated: createOutbox({ store: postgresStore({ pool, schema: `${schema}_none` }), events }),
    inTransaction,
    publish,
    publishPayload,
    snapshot: () => snapshotOf(pool, schema),
    [Symbol.asyncDispose]: () => database.drop(),
  }
}

const TABLES = [
  'outbox_event',
  'outbox_delivery',
  'outbox_subscription',
  'outbox_lane',
  'outbox_worker',
  'outbox_dead_letter',
  'outbox_operator_log',
  'outbox_operator_log_head',
  'outbox_scope',
  'outbox_unmatched',
  'outbox_inbox',
  'outbox_sequence',
  'outbox_migration',
] as const

async function snapshotOf(pool: pg.Pool, schema: string): Promise<string> {
  const parts = TABLES.map(
    (table) =>
      `select '${table}' as name, count(*) || ' ' || coalesce(md5(string_agg(t::text, '' order by t::text)), '') as rows
         from ${schema}.${table} t`,
  )
  const schemas = 'select count(*)::int as schemas from pg_namespace where nspname like $1'
  const { rows } = await pool.query(parts.join(' union all '))
  const { rows: found } = await pool.query(schemas, [`${schema}%`])
  return JSON.stringify([rows, found])
}
