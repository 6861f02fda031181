import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { createOutbox, defineEvents, subscription, unchecked } from '../src/index.ts'
import { migrateUp, postgresStore } from '../src/store/postgres/index.ts'

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
await migrateUp(pool)
await pool.query('create table if not exists orders (id text primary key, total integer not null)')

// What can happen. The type flows to publish and to the handlers; a zod, valibot or arktype schema checks it too.
const events = defineEvents({
  OrderPlaced: {
    stream: 'shop.order.event',
    aggregate: 'order',
    schema: unchecked<{ orderId: string; total: number }>(),
  },
})
const outbox = createOutbox({ store: postgresStore({ pool }), events })

// Who wants to know. Any number of subscriptions, each with its own progress, retries and dead letters.
const worker = outbox.worker([
  subscription('receipts', {
    on: {
      OrderPlaced: async (event, ctx) => {
        console.log(
          `attempt ${ctx.attempt}: receipt for ${event.payload.orderId} over ${event.payload.total}`,
        )
      },
    },
  }),
])
await worker.start()

// The row and the event are written together, or not at all.
const orderId = randomUUID()
await outbox.inTransaction(pool, async (tx) => {
  await tx.query('insert into orders values ($1, $2)', [orderId, 12_000])
  await outbox.publish(tx, 'OrderPlaced', { aggregateId: orderId, payload: { orderId, total: 12_000 } })
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void worker.stop().then(() => pool.end()))
}
