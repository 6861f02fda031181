import type pg from 'pg'
import { defineEvents } from '../../src/event/define-events.ts'
import { unchecked } from '../../src/event/standard-schema.ts'
import type { Transaction } from '../../src/index.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { OutboxStore } from '../../src/store/store.ts'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'

export const shopEvents = defineEvents({
  OrderPlaced: {
    stream: 'shop.order',
    aggregate: 'order',
    schema: unchecked<{ n: number }>(),
    sequence: true,
  },
  OrderPaid: { stream: 'shop.order', aggregate: 'order', schema: unchecked<{ n: number }>() },
})

/** An outbox on a database of the test's own. */
export interface PostgresOutbox extends AsyncDisposable {
  readonly database: TestDatabase
  readonly pool: pg.Pool
  readonly store: OutboxStore<Transaction>
  readonly outbox: Outbox<typeof shopEvents, Transaction>
  /** Publishes one event per aggregate id, in one transaction. */
  readonly place: (...aggregateIds: readonly (string | number)[]) => Promise<void>
}

export async function postgresOutbox(): Promise<PostgresOutbox> {
  const database = await createTestDatabaseWithTables({ connections: 10 })
  const { pool, schema } = database
  const store = postgresStore({ pool, schema })
  const outbox = createOutbox({ store, events: shopEvents })
  let n = 0
  const place = (...aggregateIds: readonly (string | number)[]): Promise<void> =>
    outbox.inTransaction(pool, async (tx) => {
      const inputs = aggregateIds.map((aggregateId) => {
        n += 1
        return { type: 'OrderPlaced' as const, aggregateId, payload: { n } }
      })
      await outbox.publishAll(tx, inputs)
    })
  return { database, pool, store, outbox, place, [Symbol.asyncDispose]: () => database.drop() }
}
