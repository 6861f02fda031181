import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { createOutbox, defineEvents, type EventBus, type Observer, unchecked } from '../src/index.ts'
import { migrateUp, postgresStore } from '../src/store/postgres/index.ts'
import { type ResolvedDatabase, resolveDatabase } from '../src/testing/index.ts'

// The code under test. It depends on the bus, not on the outbox.
const events = defineEvents({
  OrderPlaced: { stream: 'shop.order.event', aggregate: 'order', schema: unchecked<{ total: number }>() },
})
async function placeOrder<Tx>(bus: EventBus<typeof events, Tx>, tx: Tx, orderId: string): Promise<void> {
  await bus.publish(tx, 'OrderPlaced', { aggregateId: orderId, payload: { total: 12_000 } })
}

// Without a database: a list takes the place of the outbox.
test('an order that is placed is published', async () => {
  const published: string[] = []
  const bus: EventBus<typeof events, null> = {
    publish: async (_tx, name, { aggregateId, payload }) => {
      published.push(`${name} of ${aggregateId} over ${payload.total}`)
      return randomUUID()
    },
    publishAll: () => assert.fail('not expected'),
  }
  await placeOrder(bus, null, 'A-1')
  assert.deepEqual(published, ['OrderPlaced of A-1 over 12000'])
})

// With a real PostgreSQL: the one that DATABASE_URL names, or an embedded one.
let database: ResolvedDatabase
let pool: pg.Pool
before(async () => {
  database = await resolveDatabase()
  pool = new pg.Pool({ connectionString: database.url })
})
after(async () => {
  await pool.end()
  await database.stop()
})

// Events cannot be deleted, so that each test has a schema of its own.
async function newOutbox() {
  const schema = `test_${randomUUID()}`
  await migrateUp(pool, { schema })
  return createOutbox({ store: postgresStore({ pool, schema }), events })
}

test('a handler gets what was committed', async (t) => {
  const outbox = await newOutbox()
  const told = new EventEmitter()
  const observer: Observer = (event) => told.emit(event.kind, event)
  const got: number[] = []
  const receipts = outbox.subscription('receipts', {
    on: { OrderPlaced: (event) => void got.push(event.payload.total) },
  })
  const worker = outbox.worker([receipts], { observers: [observer] })
  t.after(() => worker.stop())
  await worker.active()

  const handled = once(told, 'handled')
  await outbox.inTransaction(pool, (tx) => placeOrder(outbox, tx, 'A-1'))
  await handled

  assert.deepEqual(got, [12_000])
})

test('an order that can never be served is kept for a person', async (t) => {
  const outbox = await newOutbox()
  const told = new EventEmitter()
  const observer: Observer = (event) => told.emit(event.kind, event)
  const receipts = outbox.subscription('receipts', {
    maxAttempts: 1,
    on: { OrderPlaced: () => Promise.reject(new Error('no such customer')) },
  })
  const worker = outbox.worker([receipts], { observers: [observer] })
  t.after(() => worker.stop())
  await worker.active()

  const dead = once(told, 'dead')
  await outbox.inTransaction(pool, (tx) => placeOrder(outbox, tx, 'A-2'))
  await dead

  const [letter] = await outbox.deadLetters.list()
  assert.equal(letter?.aggregateId, 'A-2')
  assert.match(letter.errorMessage, /no such customer/)
})
