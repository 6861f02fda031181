import { type } from 'arktype'
import * as v from 'valibot'
import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import type {
  Catalogue,
  CatalogueEvent,
  EventName,
  EventsByName,
  PayloadInput,
  PayloadOutput,
} from '../../src/event/catalogue.ts'
import { defineEvents } from '../../src/event/define-events.ts'
import type { OutboxEvent } from '../../src/event/event.ts'
import { unchecked } from '../../src/event/standard-schema.ts'
import { storedEvent } from './support.ts'

interface SliceCreated {
  readonly sliceId: string
}

const base = { stream: 'shop.event', aggregate: 'order' }
const events = defineEvents({
  OrderPlaced: {
    ...base,
    schema: z.object({ id: z.string(), amount: z.string().transform((text) => BigInt(text)) }),
    orderingKey: (payload, { aggregateId }) => `${payload.amount.toString(36)}${aggregateId.trim()}`,
    version: 2,
    upcast: { 1: (old) => ({ ...old, amount: '0' }) },
  },
  PaymentFailed: {
    ...base,
    schema: v.object({ retryCount: v.number() }),
    orderingKey: (p) => p.retryCount.toFixed(),
  },
  LedgerPosted: { ...base, schema: type({ accountId: 'string' }), orderingKey: (p) => p.accountId },
  SliceCreated: { ...base, schema: unchecked<SliceCreated>(), orderingKey: (p) => p.sliceId },
  BotKicked: { ...base, orderingKey: (p) => String(p) },
})
type Events = typeof events

test('names and payloads are known to the compiler', () => {
  expectTypeOf<EventName<Events>>().toEqualTypeOf<
    'OrderPlaced' | 'PaymentFailed' | 'LedgerPosted' | 'SliceCreated' | 'BotKicked'
  >()
  expectTypeOf<PayloadInput<Events, 'OrderPlaced'>>().toEqualTypeOf<{ id: string; amount: string }>()
  expectTypeOf<PayloadOutput<Events, 'OrderPlaced'>>().toEqualTypeOf<{ id: string; amount: bigint }>()
  expectTypeOf<PayloadOutput<Events, 'PaymentFailed'>>().toEqualTypeOf<{ retryCount: number }>()
  expectTypeOf<PayloadInput<Events, 'LedgerPosted'>>().toEqualTypeOf<{ accountId: string }>()
  expectTypeOf<PayloadInput<Events, 'SliceCreated'>>().toEqualTypeOf<SliceCreated>()
  expectTypeOf<PayloadOutput<Events, 'BotKicked'>>().toEqualTypeOf<unknown>()
  expectTypeOf<CatalogueEvent<Events, 'SliceCreated'>>().toEqualTypeOf<
    OutboxEvent<'SliceCreated', SliceCreated>
  >()
  expectTypeOf<EventsByName<Events>['PaymentFailed']['payload']>().toEqualTypeOf<{ retryCount: number }>()
})

test('a read event is told apart by its type', async () => {
  const read = await events.read(storedEvent({ schemaVersion: 2, payload: { id: 'a', amount: '5' } }))
  if (read?.type !== 'OrderPlaced') throw new Error('expected an order')
  expectTypeOf(read.payload).toEqualTypeOf<{ id: string; amount: bigint }>()
  expect(read.payload.amount).toBe(5n)
})

test('every catalogue is a Catalogue', () => {
  expectTypeOf<Events>().toExtend<Catalogue>()
  const any: Catalogue = events
  expect(any.events).toHaveLength(5)
  expectTypeOf<EventName<Catalogue>>().toEqualTypeOf<string>()
})

test('mistakes are compile errors', () => {
  const definitions = (): void => {
    // @ts-expect-error a stream is needed
    defineEvents({ OrderPlaced: { aggregate: 'order' } })
    // @ts-expect-error a misspelt property
    defineEvents({ OrderPlaced: { ...base, sensitve: ['email'] } })
    // @ts-expect-error no schema
    defineEvents({ OrderPlaced: { ...base, schema: { id: 'string' } } })
    const schema = z.object({ id: z.string() })
    // @ts-expect-error an unknown field of the payload
    defineEvents({ OrderPlaced: { ...base, schema, orderingKey: (p) => p.name } })
    // @ts-expect-error a sink nobody knows
    defineEvents({ OrderPlaced: { ...base, sensitive: [{ path: 'a', from: ['slack'] }] } })
    // @ts-expect-error a rule nobody knows
    defineEvents({ OrderPlaced: base }, { names: 'camelCase' })
  }
  expect(definitions).toBeTypeOf('function')
  // @ts-expect-error an unknown event
  expectTypeOf<PayloadInput<Events, 'OrderPlace'>>()
})
