import { expect, test, vi } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import type { ContextServices, HandlerContext } from '../../src/dispatch/handler.ts'
import { setup, someDelivery, someEvent } from './support.ts'

test('the context tells attempt, subscription and lease', async () => {
  const seen: unknown[] = []
  const { dispatcher } = setup({
    handlers: {
      OrderPlaced: (_event, ctx) => {
        seen.push(ctx.attempt, ctx.maxAttempts, ctx.subscription, ctx.lease)
      },
    },
  })
  await dispatcher.dispatch(someDelivery())
  expect(seen).toEqual([2, 5, 'billing', { token: '7', workerId: 'w' }])
})

test("E15 every line of a handler's log carries the event's identity, and never its payload", async () => {
  const { dispatcher, lines } = setup({
    handlers: {
      OrderPlaced: (_event, ctx) => {
        ctx.log.debug({}, 'one')
        ctx.log.info({ amount: 3, eventId: 'forged' }, 'two')
        ctx.log.warn({}, 'three')
        ctx.log.error({}, 'four')
        expect(ctx.log).toBe(ctx.log)
      },
    },
  })
  await dispatcher.dispatch(someDelivery())
  expect(lines.map((line) => [line.level, line.message])).toEqual([
    ['debug', 'one'],
    ['info', 'two'],
    ['warn', 'three'],
    ['error', 'four'],
  ])
  for (const { fields } of lines) {
    expect(fields).toMatchObject({
      traceId: '0af7651916cd43dd8448eb211c80319c',
      eventId: '019b76da-a800-7000-8000-000000000001',
      stream: 'shop.order.event',
      eventType: 'OrderPlaced',
      aggregateType: 'order',
      aggregateId: '42',
      subscription: 'billing',
      attempt: 2,
    })
  }
  expect(JSON.stringify(lines)).not.toContain('never logged')
  expect(lines[1]?.fields['amount']).toBe(3)
})

test('once, complete and publish go to the services with the event they belong to', async () => {
  const calls: unknown[][] = []
  const services: ContextServices<ClaimedDelivery> = {
    once: async (event, subscription, tx, work) => {
      calls.push(['once', event.eventId, subscription, tx])
      return { first: true, result: await work(tx) }
    },
    complete: async (delivery, tx) => {
      calls.push(['complete', delivery.position, tx])
    },
    publish: async (event, tx, name, input) => {
      calls.push(['publish', event.eventId, tx, name, input])
      return 'new-id'
    },
  }
  const results: unknown[] = []
  const { dispatcher } = setup({
    services,
    handlers: {
      OrderPlaced: async (_event, ctx) => {
        results.push(await ctx.once('tx', async (tx) => `done in ${tx}`))
        results.push(await ctx.publish('tx', 'LicenceGranted', { aggregateId: '1' }))
        await ctx.complete('tx')
      },
    },
  })
  expect(await dispatcher.dispatch(someDelivery())).toEqual({ kind: 'handled', completed: true })
  const { eventId } = someEvent()
  expect(calls).toEqual([
    ['once', eventId, 'billing', 'tx'],
    ['publish', eventId, 'tx', 'LicenceGranted', { aggregateId: '1' }],
    ['complete', '1', 'tx'],
  ])
  expect(results).toEqual([{ first: true, result: 'done in tx' }, 'new-id'])
})

test('a complete that failed is not a completion', async () => {
  const services = { once: vi.fn(), complete: () => Promise.reject(new Error('no row')), publish: vi.fn() }
  const { dispatcher } = setup({
    services,
    handlers: { OrderPlaced: async (_event, ctx) => ctx.complete('tx').catch(() => {}) },
  })
  expect(await dispatcher.dispatch(someDelivery())).toEqual({ kind: 'handled' })
})

test('without services the context says what is missing', async () => {
  let failure: unknown
  const { dispatcher } = setup({
    handlers: {
      OrderPlaced: async (_event, ctx: HandlerContext) => {
        failure = await ctx.publish('tx', 'X', {}).catch((error: unknown) => error)
      },
    },
  })
  await dispatcher.dispatch(someDelivery())
  expect(String(failure)).toContain('ctx.publish is not available here')
})
