import { expect, expectTypeOf, test } from 'vitest'
import * as z from 'zod'
import type { HandlerContext, HandlersOf } from '../../src/dispatch/handler.ts'
import type { CatalogueEvent, EventsByName } from '../../src/event/catalogue.ts'
import { defineEvents } from '../../src/event/define-events.ts'
import { setup, someDelivery, someEvent } from './support.ts'

const catalogue = defineEvents({
  OrderPlaced: {
    stream: 'shop.order.event',
    aggregate: 'order',
    version: 2,
    storedAs: 'ORDER_PLACED',
    schema: z.object({ total: z.number(), currency: z.string() }),
    upcast: { 1: (old) => ({ ...old, currency: 'KRW' }) },
  },
})

type TypedPublish = (tx: unknown, name: 'OrderPlaced', input: { aggregateId: string }) => Promise<string>
type Handlers = HandlersOf<EventsByName<typeof catalogue>, HandlerContext<TypedPublish>>

test('E16 a catalogue is a reader: handlers get typed, upcast and validated events by their name in code', async () => {
  const totals: string[] = []
  const handlers: Handlers = {
    OrderPlaced: async (event, ctx) => {
      expectTypeOf(event).toEqualTypeOf<CatalogueEvent<typeof catalogue, 'OrderPlaced'>>()
      expectTypeOf(event.payload.currency).toBeString()
      expectTypeOf(ctx.publish).toEqualTypeOf<TypedPublish>()
      totals.push(`${event.payload.total} ${event.payload.currency}`)
    },
  }
  const { dispatcher } = setup({ reader: catalogue, handlers: handlers as never })
  const stored = (payload: unknown): ReturnType<typeof someDelivery> =>
    someDelivery({ event: someEvent({ type: 'ORDER_PLACED', payload }) })
  expect(await dispatcher.dispatch(stored({ total: 3 }))).toEqual({ kind: 'handled' })
  expect(await dispatcher.dispatch(stored({ total: 'three' }))).toMatchObject({
    kind: 'failed',
    failure: { code: 'PAYLOAD_INVALID' },
    retry: { kind: 'never' },
  })
  expect(totals).toEqual(['3 KRW'])
})

test('a handler for an event that is not in the catalogue does not compile', () => {
  // @ts-expect-error -- OrderPlacd is a typo
  const handlers: Handlers = { OrderPlacd: () => {} }
  expect(handlers).toBeDefined()
})
