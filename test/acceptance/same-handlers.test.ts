import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fixed, relay } from '../../src/index.ts'
import { createKafkaConsumer, deadLetterTopic, kafka } from '../../src/kafka/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient, comes } from '../support/patience.ts'
import { TestKafka } from './kafka-support.ts'
import { SHOP_TABLES, type ShopEvents, shopEvents, shopHandlers } from './same-handlers.ts'
import { openSystem, type System } from './support.ts'

bePatient()

type Shop = System<ShopEvents>
const ORDERS = 40
const RETRY = { retry: fixed(20), maxAttempts: 4 } as const

/** A way that events take from the outbox to the handlers: how it is wired, and how that is undone. */
interface Leg {
  readonly name: string
  readonly needsKafka: boolean
  readonly start: (shop: Shop) => Promise<() => Promise<void>>
}

let broker: TestKafka | null = null
const brokerOf = (): TestKafka => {
  if (broker === null) throw new Error('there is no Kafka for this leg')
  return broker
}

/** Each leg's wiring is all that differs. */
const LEGS: readonly Leg[] = [
  {
    name: 'the queue in PostgreSQL',
    needsKafka: false,
    start: async (shop) => {
      const on = shopHandlers(shop.pool)
      await shop.run([shop.outbox.subscription('orders', { on, order: 'aggregate', ...RETRY })])
      return async () => {}
    },
  },
  {
    name: 'a relay to Kafka and a consumer of it',
    needsKafka: true,
    start: async (shop) => {
      const { producer, client } = brokerOf()
      await brokerOf().createTopics(['shop.order', 'shop.order.dead'])
      await shop.run([relay('to-kafka', { via: kafka({ producer }), order: 'aggregate' })])
      const consumer = createKafkaConsumer({
        name: 'orders',
        consumer: () => client.consumer({ groupId: 'orders', maxWaitTimeInMs: 50, retry: { retries: 20 } }),
        topics: ['shop.order'],
        events: shopEvents,
        store: postgresStore({ pool: shop.pool, schema: shop.schema }),
        on: shopHandlers(shop.pool),
        deadLetters: deadLetterTopic({ producer }),
        ...RETRY,
      })
      await consumer.start()
      return () => consumer.stop()
    },
  },
]

describe('E16 I1 the same handlers over every way that events can take', () => {
  beforeAll(async () => {
    if (kafkaAvailable()) broker = await TestKafka.start()
  })
  afterAll(async () => {
    await broker?.[Symbol.asyncDispose]()
  })

  const effects = new Map<string, unknown>()

  test.each(LEGS)('$name has the effects', async ({ name, needsKafka, start }) => {
    if (needsKafka && broker === null) return
    await using shop = await openSystem(shopEvents, { tables: SHOP_TABLES })
    const stop = await start(shop)
    await sell(shop)
    await comes('all orders are at their end', async () => {
      return (await shop.count('order_view', "state in ('paid', 'cancelled') and paid > 0")) === ORDERS
    })
    await stop()
    effects.set(name, await shop.rows('select * from order_view order by id'))
    expect(await shop.count('order_view', "trail[1] = 'placed' and trail[2] = 'paid'")).toBe(ORDERS)
  })

  test('and they are the same everywhere', () => {
    const [first, ...others] = [...effects.values()]
    expect(first).toHaveLength(ORDERS)
    for (const other of others) expect(other).toEqual(first)
  })
})

/** Orders that are placed, paid (some with a bank that fails once) and, every third, cancelled. One is of an old version. */
async function sell(shop: Shop): Promise<void> {
  for (let n = 1; n <= ORDERS; n += 1) {
    const aggregateId = `order-${String(n).padStart(3, '0')}`
    if (n === 7) await publishOldVersion(shop, aggregateId)
    else {
      const payload = { product: `p-${n}`, amount: n, currency: 'USD' }
      await shop.publish('OrderPlaced', { aggregateId, payload })
    }
    await shop.publish('OrderPaid', { aggregateId, payload: { amount: n } })
    if (n % 3 === 0) await shop.publish('OrderCancelled', { aggregateId, payload: { why: 'regret' } })
  }
}

/** As code of an earlier release would have written it. */
async function publishOldVersion(shop: Shop, aggregateId: string): Promise<void> {
  await shop.pool.query(
    `insert into outbox_event (stream, event_type, schema_version, aggregate_type, aggregate_id, sequence, payload)
     values ('shop.order', 'OrderPlaced', 1, 'order', $1, 1, $2)`,
    [aggregateId, JSON.stringify({ product: 'p-7', amount: 7 })],
  )
}
