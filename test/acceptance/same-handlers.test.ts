import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fixed, relay, type Worker } from '../../src/index.ts'
import { createKafkaConsumer, deadLetterTopic, type KafkaConsumer, kafka } from '../../src/kafka/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { type ConnectServer, startConnect } from '../support/kafka/connect.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient, comes } from '../support/patience.ts'
import { printedConfig, register, unregister } from './debezium-system.ts'
import { TestKafka } from './kafka-support.ts'
import { SHOP_TABLES, type ShopEvents, shopEvents, shopHandlers } from './same-handlers.ts'
import { openSystem, type System } from './support.ts'

bePatient()

type Shop = System<ShopEvents>
const ORDERS = 40
/** Each is placed and paid, every third is cancelled too. */
const STEPS = 2 * ORDERS + Math.floor(ORDERS / 3)
const RETRY = { retry: fixed(20), maxAttempts: 4 } as const

/** A way that events take from the outbox to the handlers: how it is wired, and how that is undone. */
interface Leg {
  readonly name: string
  readonly needsKafka: boolean
  readonly start: (shop: Shop) => Promise<() => Promise<void>>
}

let broker: TestKafka | null = null
let connect: ConnectServer | null = null
const serversOf = (): { readonly broker: TestKafka; readonly connect: ConnectServer } => {
  if (broker === null || connect === null) throw new Error('there is no Kafka for this leg')
  return { broker, connect }
}

/** Each leg's wiring is all that differs. */
const LEGS: readonly Leg[] = [
  {
    name: 'the queue in PostgreSQL',
    needsKafka: false,
    start: (shop) => handle(shop, 'queue'),
  },
  {
    name: 'the log stream',
    needsKafka: false,
    start: (shop) => handle(shop, 'stream'),
  },
  {
    name: 'a relay to Kafka and a consumer of it',
    needsKafka: true,
    start: (shop) => relayAndConsume(shop, 'queue'),
  },
  {
    name: 'a relay that reads the log, to Kafka, and a consumer of it',
    needsKafka: true,
    start: (shop) => relayAndConsume(shop, 'stream'),
  },
  {
    name: 'Debezium, and a consumer of what it sends',
    needsKafka: true,
    start: async (shop) => {
      const servers = { system: shop, connect: serversOf().connect }
      const config = await printedConfig(shop, 'same-handlers', ['--topic-prefix', 'debezium'])
      await serversOf().broker.createTopics(['debezium.order', 'debezium.order.dead'])
      await register(servers, config)
      const consumer = await consume(shop, 'debezium.order')
      return async () => {
        await consumer.stop()
        await unregister(servers, config)
      }
    },
  },
]

async function handle(shop: Shop, engine: 'queue' | 'stream'): Promise<() => Promise<void>> {
  const on = shopHandlers(shop.pool)
  const worker = await shop.run([
    shop.outbox.subscription('orders', { engine, on, order: 'aggregate', ...RETRY }),
  ])
  return () => leave(shop, worker)
}

async function relayAndConsume(shop: Shop, engine: 'queue' | 'stream'): Promise<() => Promise<void>> {
  const topic = `${engine}.order`
  const { producer } = serversOf().broker
  await serversOf().broker.createTopics([topic, `${topic}.dead`])
  const via = kafka({ producer, topic: `${engine}.{aggregateType}` })
  const worker = await shop.run([relay('to-kafka', { engine, via, order: 'aggregate' })])
  const consumer = await consume(shop, topic)
  return async () => {
    await consumer.stop()
    await leave(shop, worker)
  }
}

async function consume(shop: Shop, topic: string): Promise<KafkaConsumer> {
  const { producer, client } = serversOf().broker
  const consumer = createKafkaConsumer({
    name: 'orders',
    consumer: () => client.consumer({ groupId: topic, maxWaitTimeInMs: 50, retry: { retries: 20 } }),
    topics: [topic],
    events: shopEvents,
    store: postgresStore({ pool: shop.pool, schema: shop.schema }),
    on: shopHandlers(shop.pool),
    deadLetters: deadLetterTopic({ producer }),
    ...RETRY,
  })
  await consumer.start()
  return consumer
}

/** Stops a worker, and leaves no slot behind on the server, which others use too. */
async function leave(shop: Shop, worker: Worker): Promise<void> {
  await worker.stop()
  const left = `select pg_drop_replication_slot(r.slot_name) from pg_replication_slots r
                 where r.slot_name in (select slot from outbox_stream) and not r.active`
  const count =
    'select count(*) from pg_replication_slots where slot_name in (select slot from outbox_stream)'
  await comes('no slot is left', async () => {
    await shop.rows(left)
    return Number(await shop.value(count)) === 0
  })
}

describe('E16 I1 the same handlers over every way that events can take', () => {
  beforeAll(async () => {
    if (!kafkaAvailable()) return
    broker = await TestKafka.start()
    connect = await startConnect({ bootstrap: broker.server.bootstrap })
  })
  afterAll(async () => {
    await connect?.stop()
    await broker?.[Symbol.asyncDispose]()
  })

  const effects = new Map<string, unknown>()

  test.for(LEGS)('$name has the effects', async ({ name, needsKafka, start }, { skip }) => {
    if (needsKafka && broker === null) skip()
    await using shop = await openSystem(shopEvents, { tables: SHOP_TABLES })
    const stop = await start(shop)
    await sell(shop)
    await comes('all orders are at their end', async () => {
      return Number(await shop.value('select sum(cardinality(trail)) from order_view')) === STEPS
    })
    await stop()
    effects.set(name, await shop.rows('select * from order_view order by id'))
    expect(await shop.count('order_view', "trail[1] = 'placed' and trail[2] = 'paid'")).toBe(ORDERS)
  })

  test('and they are the same everywhere', () => {
    const [first, ...others] = [...effects.values()]
    expect(effects.size).toBe(LEGS.filter(({ needsKafka }) => broker !== null || !needsKafka).length)
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
      await shop.publish('OrderPlaced', { aggregateId, payload, headers: { correlationId: `c-${n}` } })
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
