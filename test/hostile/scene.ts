import type pg from 'pg'
import { z } from 'zod'
import {
  createOutbox,
  defineEvents,
  type Observer,
  type Outbox,
  type OutboxStore,
  type PublishInput,
  type Subscription,
  type Transaction,
  unchecked,
} from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { createTestDatabaseWithTables } from '../support/database.ts'
import { type Snapshot, snapshotOf } from './snapshot.ts'

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

/** A schema with the tables and some rows in them, and one without, for everything that must leave both as they are. */
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
  /** Everything in all tables, to compare. */
  snapshot(): Promise<Snapshot>
}

export async function createScene(): Promise<Scene> {
  const database = await createTestDatabaseWithTables()
  const { pool, schema, url } = database
  const store = postgresStore({ pool, schema })
  const outbox = createOutbox({ store, events })
  await leaveLetters(outbox, pool)
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
    snapshot: () => snapshotOf(pool),
    [Symbol.asyncDispose]: () => database.drop(),
  }
}

/**
 * Two open dead letters, 1 and 2, and a plan to deliver them again, 1: in empty tables whatever finds nothing, or changes
 * nothing, proves nothing.
 */
async function leaveLetters(outbox: HostileOutbox, pool: pg.Pool): Promise<void> {
  const messages = ['no route to host', 'disk is 100% full']
  const { promise: areDead, resolve } = withResolvers()
  let dead = 0
  const observer: Observer = ({ kind }) => {
    if (kind === 'dead') dead += 1
    if (dead === messages.length) resolve()
  }
  const failing = outbox.subscription('failing', {
    maxAttempts: 1,
    on: { OrderPlaced: ({ payload }) => Promise.reject(new Error(String(payload))) },
  })
  const worker = outbox.worker([failing], { observers: [observer] })
  await worker.active()
  await outbox.inTransaction(pool, async (tx) => {
    for (const payload of messages) await outbox.publish(tx, 'OrderPlaced', { aggregateId: 1, payload })
  })
  await areDead
  await worker.stop()
  await outbox.redrive.plan({})
}

/** A promise, and what keeps it: Node 20 has no Promise.withResolvers. */
function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
