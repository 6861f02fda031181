import { Kafka } from 'kafkajs'
import pg from 'pg'
import { expect, test } from 'vitest'
import { defineEvents } from '../../src/event/define-events.ts'
import { unchecked } from '../../src/event/standard-schema.ts'
import { defineWorkerConfig, relay } from '../../src/index.ts'
import { kafka } from '../../src/kafka/index.ts'
import { createOutbox } from '../../src/outbox.ts'
import { postgresStore } from '../../src/store/postgres/postgres-store.ts'

test('a config is typed by its outbox, as an object and as a function', async () => {
  const events = defineEvents({
    OrderPlaced: { stream: 'shop', aggregate: 'order', schema: unchecked<{ amount: number }>() },
  })
  const outbox = createOutbox({ store: postgresStore({ pool: new pg.Pool() }), events })
  const mailer = outbox.subscription('mailer', { on: { OrderPlaced: ({ payload }) => payload.amount } })
  const config = { outbox, subscriptions: [mailer], options: { leaseMs: 10_000 } }

  expect(defineWorkerConfig(config)).toBe(config)
  const make = defineWorkerConfig(async ({ schema }) => ({ ...config, options: { workerId: schema } }))
  expect(typeof make === 'function' && (await make({ databaseUrl: undefined, schema: 'x' })).options).toEqual(
    {
      workerId: 'x',
    },
  )
  // @ts-expect-error a subscription that is none
  defineWorkerConfig({ outbox, subscriptions: ['mailer'] })
})

test('a config takes relays beside subscriptions, as outbox.worker does', () => {
  const events = defineEvents({
    OrderPlaced: { stream: 'shop', aggregate: 'order', schema: unchecked<{ amount: number }>() },
  })
  const outbox = createOutbox({ store: postgresStore({ pool: new pg.Pool() }), events })
  const mailer = outbox.subscription('mailer', { on: { OrderPlaced: ({ payload }) => payload.amount } })
  const toKafka = relay('to-kafka', { via: kafka({ producer: () => new Kafka({ brokers: [] }).producer() }) })

  const config = defineWorkerConfig({ outbox, subscriptions: [mailer, toKafka] })
  expect(config).toMatchObject({ subscriptions: [{ name: 'mailer' }, { name: 'to-kafka' }] })
})
