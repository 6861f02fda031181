import { describe, expect, test } from 'vitest'
import { defineEvents, subscription, unchecked } from '../../src/index.ts'
import { createOutbox } from '../../src/outbox.ts'
import { migrateUp, postgresStore } from '../../src/store/postgres/index.ts'
import { createTestDatabase } from '../support/database.ts'
import { eventually } from '../support/program.ts'

const events = defineEvents({
  OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<{ n: number }>() },
  OrderPaid: { stream: 'shop.order', aggregate: 'order', schema: unchecked<{ n: number }>() },
})

async function setup() {
  const database = await createTestDatabase()
  await migrateUp(database.pool, { schema: database.schema })
  const outbox = createOutbox({
    store: postgresStore({ pool: database.pool, schema: database.schema }),
    events,
  })
  return { database, outbox, pool: database.pool }
}

describe('a worker', () => {
  test('runs a handler for each event that was committed', async () => {
    const { database, outbox, pool } = await setup()
    const seen: number[] = []
    const worker = outbox.worker([
      subscription('billing', {
        on: {
          OrderPlaced: async (event, ctx) => {
            await ctx.once(pool, async (tx) => {
              await tx.query('select 1')
              await ctx.publish(tx, 'OrderPaid', {
                aggregateId: event.aggregateId,
                payload: { n: event.payload.n },
              })
            })
          },
          OrderPaid: (event) => void seen.push(event.payload.n),
        },
      }),
    ])
    await worker.start()
    await outbox.inTransaction(pool, async (tx) => {
      for (let n = 0; n < 20; n += 1)
        await outbox.publish(tx, 'OrderPlaced', { aggregateId: n, payload: { n } })
    })
    await eventually('all are paid', () => seen.length === 20)
    await worker.stop()
    expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n))
    const [status] = await outbox.status()
    expect(status?.counts.DONE).toBe(40)
    await database.drop()
  })
})
